"""The seam between deciding and doing: what the engine asks of a runner, and what it is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from dsms import operators
from dsms.batch import Batch, Column
from dsms.clock import Clock
from dsms.errand import Errand
from dsms.errors import DsmsError
from dsms.goods import Goods
from dsms.ledger import NOTHING, Ledger, Queue
from dsms.parcel import Parcel
from dsms.plan import Plan, Station
from dsms.schedule import Chunk
from dsms.segment import Segment, Share

# One station's work on what it took at once. A plain tuple, since one is made for every tuple processed:
# (queue taken from, taken, made, cost, when the first taken had come into the queue, arrivals of the results that
#  left, bytes taken and made where tuples have sizes of their own)
NONE: Sequence[float] = ()  # no results left: the engine looks for this very object
Step = tuple[Queue, float, float, float, float, Sequence[float], tuple[float, float] | None]


Sink = Callable[[str, Batch], None]  # a query's name and its rows
Aside = Callable[[str, operators.Aside], None]  # an operator's name and rows it could not take through, with a reason


class Runner(ABC):
    """Keeps the goods of a plan's queues and takes them through a segment when granted a turn.

    It moves the goods and, with them, the queues' ledger; what a step costs, and when, is the engine's to account.
    """

    occupied: float | None = None  # seconds that turns took where the work is done; None: their costs are all of it
    exact = True  # whether a step is one tuple, so that each has its own instant

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        self.plan, self.ledger, self.clock = plan, ledger, clock
        self._fractional = plan.settings.fractional
        self.sink: Sink | None = None  # who gets the rows that queries put out
        self.aside: Aside | None = None  # who gets the rows that did not get through
        self.results: Counter[str] = Counter()  # by query: batches that were put out, where they are numbered
        self.left_aside: Counter[tuple[str, str]] = Counter()  # rows by operator and kind: "late", "error", "shed"
        self.reasons: dict[tuple[str, str], str] = {}  # of the first of them, by operator and kind
        self.barren: dict[str, float] = {}  # by station that raises on all there is: on how many batches in a row
        self.clocked: frozenset[int] = frozenset()  # the stations whose deadlines are instants of the clock
        self.deadlines: dict[int, int] = {}  # by station: the timestamp at which it is to be told that time has come

    @abstractmethod
    def expect(self, chunk: Chunk) -> None:
        """These arrivals will be admitted next, in this order."""

    @abstractmethod
    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        """The arrival of this number among the expected has come, as the seq-th of all; answers its bytes."""

    @abstractmethod
    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        """Take from the queue what one step takes, at most so many tuples, and pass on what comes of it."""

    def run(self, segment: Segment, share: Share, now: float) -> list[Step]:
        """Take at most this share through the segment, each tuple as far as it goes before the next is begun."""
        way = _Way(self)
        self._errand(segment, share, now).proceed(way)
        return way.steps

    def _errand(self, segment: Segment, share: Share, now: float) -> Errand[Queue]:
        return Errand(
            segment.start(),
            segment.after,
            share,
            now,
            segment.next_cost,
            startups(segment),
            exact=self.exact,
            declared=self.clock.meter() is None,
            pieces=self._fractional,
        )

    def push(self, stream: int, batch: Batch | Parcel, instant: float) -> float:
        """Rows, or only time, have come from outside; answers their bytes."""
        raise TypeError(f"{type(self).__name__} runs abstract tuples: push a number of them, not a batch of rows")

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        """Give up the tuples at these places of a queue, or all; answers how many they were, and their bytes."""
        raise DsmsError(f"{type(self).__name__} has no tuples that could be given up")

    def renew(self, stations: Iterable[Station], anew: bool) -> None:
        """Let these stations try again, if they are to begin anew without their state."""
        raise DsmsError(f"{type(self).__name__} has no stations that could fail")

    def doing(self) -> tuple[str, str, str] | None:
        """Asked from another thread while a turn is under way: the station at work, where that is, and its stack."""
        return None

    def end(self, station: str) -> bool:
        """Asked from another thread: end whatever a station hangs in; whether that can be done."""
        return False

    def put_aside(self, station: str, aside: operators.Aside) -> None:
        """Rows did not get through: whoever asked for them gets them, and they are counted."""
        self.left_aside[station, aside.kind] += len(aside.batch)
        self.reasons.setdefault((station, aside.kind), aside.reason)
        if self.aside is not None:
            self.aside(station, aside)

    def operator(self, station: Station) -> operators.Operator:
        """A station's operator with its state, if that is here."""
        return station.operator

    def prospects(self) -> dict[str, float] | None:
        """For each query with a result still on its way: the arrival of the oldest; None where fates are not known."""
        return None

    def waiting_since(self) -> float:
        """When the tuple that has waited longest came into its queue; infinity when none waits."""
        return NOTHING

    def succeed(self, plan: Plan, ledger: Ledger, goods: Mapping[str, Goods]) -> Runner:
        """The runner for a plan that follows on this one, with these goods of stations that come from elsewhere.

        Stations in both keep their goods, and until the other is settled this one can still go on as if nothing were.
        """
        raise DsmsError(f"{type(self).__name__} runs abstract tuples: queries come and go where rows are run")

    def settle(self, before: Runner) -> None:
        """It has taken over: what stays learns what is new around it, what is gone is let go."""
        return

    def contents(self, queue: Queue) -> list[tuple[float, float]]:
        """Tuples and bytes of each batch in a queue, the oldest first."""
        raise DsmsError(f"{type(self).__name__} has no batches in its queues")

    def held_bytes(self, queues: Sequence[Queue]) -> list[float]:
        """The bytes in each of these queues."""
        return [sum(size for _, size in self.contents(queue)) for queue in queues]

    def state_bytes(self) -> dict[str, float]:
        """By station: the bytes that its operator keeps; without those that keep nothing."""
        return {}

    def extracted(self, stations: Iterable[str]) -> dict[str, Goods]:
        """The goods of these stations for another runner: this one is to be succeeded by one without them."""
        raise DsmsError(f"{type(self).__name__} has no goods that could move")

    def let_go(self, stations: Iterable[str]) -> None:
        """Nobody needs the goods of these stations here any more."""
        return

    def close(self) -> None:
        """Let go of what it holds outside this process."""
        return


class _Way:
    """All queues of a runner as the way that a turn takes: it never has to go elsewhere."""

    def __init__(self, runner: Runner) -> None:
        self._work, self.steps = runner.work, list[Step]()

    def holds(self, stop: Queue) -> bool:
        return True

    def visit(self, stop: Queue, at: float, startup: float, most: float) -> tuple[float, float, float]:
        step = self._work(stop, at, startup, most)
        self.steps.append(step)
        return step[1:4]


def startups(segment: Segment) -> dict[Station, float]:
    """What starting a station takes, by station, for those segments where it takes something."""
    return {station: station.operator.startup for station in segment.stations} if segment.startup else {}
