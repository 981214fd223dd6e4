"""Runner: holds the tuples of a plan's queues, runs segments when the engine grants a turn, and reports the steps.

A runner of abstract tuples is a `Runner`. One of real rows is a `RowRunner`, which can also take pushed rows, reject
bad ones, and move stations to another plan.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from dsms.clock import Clock
from dsms.data.batch import Batch, Column
from dsms.data.batch_ref import BatchRef
from dsms.data.dead_letter import DeadLetter
from dsms.engine.arrival_schedule import ArrivalChunk
from dsms.engine.ledger import NO_HEAD, Ledger, Queue
from dsms.engine.runners.station_state import StationState
from dsms.engine.runners.turn_cursor import TurnCursor
from dsms.errors import DsmsError
from dsms.operators import Operator
from dsms.plan.graph import Plan, Station
from dsms.plan.segment import Segment, Share

NO_RESULTS: Sequence[float] = ()  # no results left in a step: the engine compares by identity

# A step's fields in order. Runners may return them unnamed, because a simulation makes one step for every tuple and a
# named one would cost a tenth of the turn; the engine unpacks them at once, and observers always receive `Step`s.
StepFields = tuple[Queue, float, float, float, float, Sequence[float], tuple[float, float] | None]


class Step(NamedTuple):
    """One station's work on the tuples it takes from one queue at once."""

    queue: Queue
    taken: float  # tuples taken from the queue
    made: float  # tuples put out
    cost: float  # time the work took
    since: float  # when the first tuple taken had entered the queue
    result_arrivals: Sequence[float]  # instants of arrival of the results that left the plan
    sizes: tuple[float, float] | None  # bytes taken and made; None: all tuples have the declared size


class ContinuedTurn(NamedTuple):
    """A turn that a runner began by itself, because no other segment had work."""

    segment: Segment
    start: float
    steps: Sequence[Step]


def name_steps(steps: Sequence[StepFields]) -> list[Step]:
    """Return the steps with names; not by `Step._make`, which costs three times as much."""
    return list(map(_AS_STEP, steps))


_AS_STEP = partial(tuple.__new__, Step)


Sink = Callable[[str, Batch], None]  # a query's name and its rows
DeadLetterSink = Callable[[str, DeadLetter], None]  # an operator's name and the rows it rejected


class Runner(ABC):
    """Moves tuples through the queues and keeps the ledger's counts; the engine accounts for cost and time."""

    exact = True  # whether a step is one tuple, so that each has an instant of its own
    continues = False  # whether it goes on to the next segment by itself while the engine has no other to choose
    occupied: float | None = None  # seconds that turns took where the work is done; None: the steps' costs are all

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        self.plan, self.ledger, self.clock = plan, ledger, clock
        self._fractional = plan.settings.fractional
        self._measured = clock.meter() is not None  # whether work takes what the clock measures, not what is declared
        self.is_forced = False  # whether only the granted segment has work
        self.continued: list[ContinuedTurn] = []  # turns with which the last one went on
        self.places: dict[str, int] = {}  # by station: its host; empty: all stations are in this process
        self.sink: Sink | None = None  # receives the rows that queries put out
        self.on_dead_letter: DeadLetterSink | None = None  # receives the rows that operators reject
        self.results: Counter[str] = Counter()  # by query: batches put out, where they are numbered
        self.rejected_rows: Counter[tuple[str, str]] = Counter()  # by operator and kind: "late", "error", "shed"
        self.reasons: dict[tuple[str, str], str] = {}  # by operator and kind: why the first row was rejected
        self.consecutive_failures: dict[str, float] = {}  # by operator that fails on every row: batches in a row
        self.clock_driven: frozenset[int] = frozenset()  # stations whose deadlines are instants of the clock
        self.deadlines: dict[int, int] = {}  # by station: the timestamp at which it needs a watermark

    @abstractmethod
    def expect(self, chunk: ArrivalChunk) -> None:
        """Prepare for these arrivals; the engine admits them next, in this order."""

    @abstractmethod
    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        """Queue the expected arrival of this number, as the seq-th of all; return its bytes."""

    @abstractmethod
    def work(self, queue: Queue, at: float, startup: float, most: float) -> StepFields:
        """Run one step on the queue, on at most this many tuples, and pass on the outputs."""

    def run(self, segment: Segment, share: Share, now: float) -> Sequence[StepFields]:
        """Run at most this share through the segment depth first: each tuple as far as it goes before the next."""
        executor = _LocalExecutor(self, self.clock.now if self._measured else None)
        self._make_cursor(segment, share, now).run_until_remote(executor)
        return executor.steps

    def take_continued(self) -> Sequence[ContinuedTurn]:
        """Return the turns with which the runner has gone on by itself after the last one."""
        if not self.continued:
            return ()
        continued, self.continued = self.continued, []
        return continued

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        """Drop the tuples at these places of a queue, or all of them; return their number and their bytes."""
        raise DsmsError(f"{type(self).__name__} cannot shed load: it has no tuples to drop")

    def waiting_since(self) -> float:
        """Return when the longest-waiting tuple entered its queue; infinity: none waits."""
        return NO_HEAD

    def _make_cursor(self, segment: Segment, share: Share, now: float) -> TurnCursor[Queue]:
        return TurnCursor(
            segment.start(),
            segment.after,
            share,
            now,
            segment.queue_costs(self._measured) if share.time < math.inf else None,
            startup_costs(segment),
            segment.queues,
            exact=self.exact,
            pieces=self._fractional,
        )


class RowRunner(Runner):
    """A runner of real rows; the defaults are those of a runner that keeps everything in this process."""

    @abstractmethod
    def push(self, stream: int, batch: Batch | BatchRef, instant: float) -> float:
        """Queue rows, or a watermark without rows, that come from outside; return their bytes."""

    @abstractmethod
    def operator(self, station: Station) -> Operator:
        """Return a station's operator with its state, if that is in this process."""

    @abstractmethod
    def reset_operator(self, stations: Iterable[Station], discard_state: bool) -> None:
        """Let failed stations run again, with their state or, if `discard_state`, with an empty one."""

    @abstractmethod
    def contents(self, queue: Queue) -> list[tuple[float, float]]:
        """Return the tuples and bytes of each batch in a queue, the oldest first."""

    @abstractmethod
    def migrate(self, plan: Plan, ledger: Ledger, state: Mapping[str, StationState]) -> RowRunner:
        """Return the runner for the next plan, with the states of stations that come from elsewhere.

        Stations in both plans keep their state. Until `finish_migration` this runner can still continue as before.
        """

    @abstractmethod
    def finish_migration(self, before: RowRunner) -> None:
        """Take over from the runner before: update the stations that stay, drop the others."""

    @abstractmethod
    def extract_states(self, stations: Iterable[str]) -> dict[str, StationState]:
        """Return the states of these stations, for another runner to take over."""

    def drop_states(self, stations: Iterable[str]) -> None:
        """Free the states of these stations."""
        return

    def held_bytes(self, queues: Sequence[Queue]) -> list[float]:
        """Return the bytes in each of these queues."""
        return [sum(size for _, size in self.contents(queue)) for queue in queues]

    def state_bytes(self) -> dict[str, float]:
        """Return, by station, the bytes of its operator's state; stations without state are left out."""
        return {}

    def reject_rows(self, station: str, dead_letter: DeadLetter) -> None:
        """Count rows that an operator rejected, and pass them to the dead-letter sink."""
        self.rejected_rows[station, dead_letter.kind] += len(dead_letter.batch)
        self.reasons.setdefault((station, dead_letter.kind), dead_letter.reason)
        if self.on_dead_letter is not None:
            self.on_dead_letter(station, dead_letter)

    def arm(self) -> None:
        """Note that the engine knows all that other threads have asked of it so far."""
        return

    def recall(self) -> None:
        """End the present turn without going on to the next: another thread asks something of the engine."""
        return

    def current_work(self) -> tuple[str, str, str] | None:
        """Return the station at work, where it runs and its stack; called from other threads during a turn."""
        return None

    def end(self, station: str) -> bool:
        """Kill the process in which a station hangs; return whether that is possible. Called from other threads."""
        return False

    def close(self) -> None:
        """Release what the runner holds outside this process."""
        return


class _AbstractRows(RowRunner):
    """Adapts a runner of abstract tuples to the interface for rows: refuses whatever only rows can do."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner.plan, runner.ledger, runner.clock)
        self._runner, self._name = runner, type(runner).__name__

    def expect(self, chunk: ArrivalChunk) -> None:
        self._runner.expect(chunk)

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        return self._runner.admit(stream, number, seq, instant)

    def work(self, queue: Queue, at: float, startup: float, most: float) -> StepFields:
        return self._runner.work(queue, at, startup, most)

    def push(self, stream: int, batch: Batch | BatchRef, instant: float) -> float:
        raise TypeError(f"{self._name} runs abstract tuples: push a number of them, not a batch of rows")

    def operator(self, station: Station) -> Operator:
        return station.operator

    def reset_operator(self, stations: Iterable[Station], discard_state: bool) -> None:
        raise DsmsError(f"{self._name} runs abstract tuples: its operators cannot fail")

    def contents(self, queue: Queue) -> list[tuple[float, float]]:
        raise DsmsError(f"{self._name} runs abstract tuples: its queues hold no batches")

    def migrate(self, plan: Plan, ledger: Ledger, state: Mapping[str, StationState]) -> RowRunner:
        raise DsmsError(f"{self._name} runs abstract tuples: queries can be added and removed only in plans of rows")

    def finish_migration(self, before: RowRunner) -> None:
        return

    def extract_states(self, stations: Iterable[str]) -> dict[str, StationState]:
        raise DsmsError(f"{self._name} runs abstract tuples: its operators have no state to move")


def as_row_runner(runner: Runner) -> RowRunner:
    """Return the runner itself if it runs rows, else an adapter that refuses whatever only rows can do."""
    return runner if isinstance(runner, RowRunner) else _AbstractRows(runner)


class _LocalExecutor:
    """Runs a turn's steps on a runner whose queues are all in this process."""

    def __init__(self, runner: Runner, now: Callable[[], float] | None) -> None:
        self._work, self.steps = runner.work, list[StepFields]()
        self._now = now  # None: a step lasts as long as it costs

    def is_local(self, stop: Queue) -> bool:
        return True

    def run_step(self, stop: Queue, at: float, startup: float, most: float) -> tuple[float, float, float]:
        step = self._work(stop, at, startup, most)
        self.steps.append(step)
        _, taken, made, cost, *_ = step
        return taken, made, at + cost if self._now is None else self._now()


def startup_costs(segment: Segment) -> dict[Station, float]:
    """Return each station's start-up cost; empty if the segment has none."""
    return {station: station.operator.startup for station in segment.stations} if segment.startup else {}
