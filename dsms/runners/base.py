"""The seam between deciding and doing: what the engine asks of a runner, and what it is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from dsms import operators
from dsms.batch import Batch
from dsms.clock import Clock
from dsms.errors import DsmsError
from dsms.goods import Goods
from dsms.ledger import NOTHING, Ledger, Queue
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

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        self.plan, self.ledger, self.clock = plan, ledger, clock
        self._fractional = plan.settings.fractional
        self.sink: Sink | None = None  # who gets the rows that queries put out
        self.aside: Aside | None = None  # who gets the rows that did not get through
        self.left_aside: Counter[tuple[str, str]] = Counter()  # rows by operator and kind: "late" or "error"
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

    @abstractmethod
    def followers(self, step: Step) -> int:
        """How many steps each following queue needs for what this one has put into it."""

    def run(self, segment: Segment, share: Share, now: float) -> list[Step]:
        """Take at most this share through the segment, each tuple as far as it goes before the next is begun."""
        start, after = segment.start(), segment.after
        steps: list[Step] = []
        started: set[int] = set()  # start-up is paid once a turn
        at, limit, left = now, now + share.time * (1 + 1e-9), share.tuples
        while True:
            stack, most, first = [start], left, True
            while stack:
                queue = stack.pop()
                if not first and queue.merge is not None and queue.merge.head(queue) == NOTHING:
                    continue  # what has just come must wait for an older one at another input
                startup = 0.0
                if segment.startup and queue.station.index not in started:
                    startup = queue.station.operator.startup
                    started.add(queue.station.index)
                step = self.work(queue, at, startup, most)
                steps.append(step)
                at += step[3]
                if first:
                    left -= 1 if self._fractional else step[1]  # a piece counts as one, whatever its size
                    most, first = NOTHING, False
                if step[2]:
                    for following in after[queue.index]:
                        stack += [following] * self.followers(step)
            start = start if start.merge is None else start.merge.next() or start
            if _head(start) == NOTHING or left <= 0 or at + segment.next_cost > limit:
                return steps

    def push(self, stream: int, batch: Batch, instant: float) -> float:
        """Rows, or only time, have come from outside; answers their bytes."""
        raise TypeError(f"{type(self).__name__} runs abstract tuples: push a number of them, not a batch of rows")

    def put_aside(self, station: str, aside: operators.Aside) -> None:
        """Rows did not get through: whoever asked for them gets them, and they are counted."""
        self.left_aside[station, aside.kind] += len(aside.batch)
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

    def extracted(self, stations: Iterable[str]) -> dict[str, Goods]:
        """The goods of these stations for another runner: this one is to be succeeded by one without them."""
        raise DsmsError(f"{type(self).__name__} has no goods that could move")

    def let_go(self, stations: Iterable[str]) -> None:
        """Nobody needs the goods of these stations here any more."""
        return

    def close(self) -> None:
        """Let go of what it holds outside this process."""
        return


def _head(queue: Queue) -> float:
    return queue.oldest if queue.merge is None else queue.merge.head(queue)
