"""Admits rows to a domain while it is below its memory limit; makes producers wait while it is full.

A frame is acknowledged when its rows are admitted. A client with too many unacknowledged frames stops sending:
that is the back-pressure.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dsms.clock import monotonic_s
from dsms.config.live import LiveConfig
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.live.memory_limit import MemoryLimits, MemoryUsage
from dsms.live.monitor.status import IngestStatus, LimitStatus
from dsms.plan.graph import Plan

if TYPE_CHECKING:
    from dsms.engine.engine import Engine
    from dsms.live.monitor.monitor import Monitor

REOPEN_FRACTION = 7 / 8  # of a limit: a full domain admits rows again below this
IDLE_LIMIT_FRACTION = 5 / 4  # of a limit: while nothing can run, rows are admitted up to this; one may unblock a join
Rows = Batch | BatchRef


class AdmissionStep(NamedTuple):
    """Rows of one stream that are admitted together, or something that takes no room, such as a watermark."""

    admit: Callable[[], object]
    stream: str = ""
    rows: Rows | None = None


@dataclass(eq=False)
class _Request:
    """Steps that one gateway sent together; answered when the last is admitted."""

    steps: deque[AdmissionStep]
    answer: Future[None] = field(default_factory=Future)


class AdmissionQueue:
    """Keeps the order of each request's steps until there is room for them; only the domain's thread calls it.

    `count(stream, rows)` counts admitted rows, and answers their bytes in all queues.
    """

    def __init__(self, limits: MemoryLimits, count: Callable[[str, Rows], float]) -> None:
        self.limits, self._count = limits, count
        self._waiting: deque[_Request] = deque()
        self._is_full = False
        self._since: float | None = None  # when the oldest waiting request came
        self._seconds = 0.0  # in which any request waited, until then
        self._latest_timestamps: dict[str, float] = {}  # by stream with timestamps: the latest one admitted
        self.is_stuck = False  # requests wait, and nothing that the domain can run would make room

    @property
    def has_waiting(self) -> bool:
        """Whether any rows wait for admission."""
        return bool(self._waiting)

    def enqueue(self, steps: Iterable[AdmissionStep]) -> Future[None]:
        """Queue steps; the future completes when all of them are admitted."""
        self._waiting.append(request := _Request(deque(steps)))
        return request.answer

    def admit_waiting(self, fraction: float, idle: bool = False) -> bool:
        """Admit waiting rows while the used fraction of the limits allows; answers whether any were admitted.

        With `idle` nothing can run, and only new rows can change that. Then rows are admitted even if the domain is
        full: up to those of the stream that lags furthest in time, and any up to a somewhat higher limit.
        """
        admitted = False
        while self._waiting:
            self._is_full = fraction >= (REOPEN_FRACTION if self._is_full else 1.0)
            request, count = (self._waiting[0], 1) if not self._is_full else self._find_admissible(fraction, idle)
            if request is None:
                break
            takes_room = self._is_full and request.steps[0].rows is not None
            for _ in range(count):
                fraction += self._admit_next(request)
            admitted = True
            if takes_room:
                break  # these rows may have unblocked an operator
        self.is_stuck = idle and bool(self._waiting) and not admitted
        self._count_waiting_time()
        return admitted

    def refuse(self, error: Exception) -> None:
        """Fail all waiting requests with this error."""
        for request in self._waiting:
            request.answer.set_exception(error)
        self._waiting.clear()
        self._count_waiting_time()

    def set_timestamped_streams(self, streams: Iterable[str]) -> None:
        """Set which streams have timestamps; one without any row so far lags furthest."""
        self._latest_timestamps = {stream: self._latest_timestamps.get(stream, -math.inf) for stream in streams}

    def lagging_streams(self) -> list[str]:
        """The streams with timestamps behind the latest stream."""
        latest = max(self._latest_timestamps.values(), default=0.0)
        return [stream for stream, timestamp in self._latest_timestamps.items() if timestamp < latest]

    def status(self) -> IngestStatus:
        """Whether rows wait, for how long they have waited in total, how many wait, and the limits."""
        return IngestStatus(
            paused=self.has_waiting,
            seconds=self._seconds + (0.0 if self._since is None else monotonic_s() - self._since),
            waiting=sum(len(step.rows or ()) for request in list(self._waiting) for step in list(request.steps)),
            limits=LimitStatus(_finite(self.limits.rows), _finite(self.limits.bytes)),
        )

    def _find_admissible(self, fraction: float, idle: bool) -> tuple[_Request | None, int]:
        """The request, and how many of its steps, to admit although the domain is full; None to admit none."""
        if (free := next((each for each in self._waiting if each.steps[0].rows is None), None)) is not None:
            return free, 1
        if not idle:
            return None, 0
        lagging = self.lagging_streams()
        late = [
            (self._latest_timestamps[step.stream], place, count)
            for place, request in enumerate(self._waiting)
            for count, step in enumerate(request.steps, 1)
            if step.stream in lagging and step.rows is not None
        ]
        if late:
            _, place, count = min(late)
            return self._waiting[place], count
        return (self._waiting[0], 1) if fraction < IDLE_LIMIT_FRACTION else (None, 0)

    def _admit_next(self, request: _Request) -> float:
        """Admit the next step of a request; answers the fraction of the limits that its rows use."""
        if request.answer.done():
            return 0.0
        step = request.steps.popleft()
        try:
            step.admit()
            size = 0.0 if step.rows is None else self._count(step.stream, step.rows)
        except Exception as error:  # the other requests may still be admitted
            self._waiting.remove(request)
            request.answer.set_exception(error)
            return 0.0
        if not request.steps:
            self._waiting.remove(request)
            request.answer.set_result(None)
        rows = step.rows
        if rows is None:
            return 0.0
        if step.stream in self._latest_timestamps and isinstance(rows, BatchRef) and rows.latest is not None:
            self._latest_timestamps[step.stream] = max(rows.latest, self._latest_timestamps[step.stream])
        return self.limits.fraction(len(rows), size)

    def _count_waiting_time(self) -> None:
        """Add up the time in which any request waited."""
        if self._since is not None and not self._waiting:
            self._seconds += monotonic_s() - self._since
            self._since = None
        elif self._since is None and self._waiting:
            self._since = monotonic_s()


class Admission:
    """Admits rows to a domain's current engine; only the domain's thread calls it."""

    def __init__(self, setup: LiveConfig, get_current: Callable[[], tuple[Monitor, Engine]]) -> None:
        self._get_current = get_current
        self._memory = MemoryUsage(setup)
        self._queue = AdmissionQueue(self._memory.limits, self._count)
        self._reader_counts: dict[str, int] = {}  # by stream

    @property
    def has_waiting(self) -> bool:
        """Whether any rows wait for admission."""
        return self._queue.has_waiting

    @property
    def is_stuck(self) -> bool:
        """Whether rows wait and nothing that the domain can run would make room."""
        return self._queue.is_stuck

    def set_plan(self, plan: Plan) -> None:
        """Use the streams and readers of this plan from now on."""
        self._reader_counts = {stream.name: len(stream.consumers) for stream in plan.streams}
        self._queue.set_timestamped_streams(s.name for s in plan.streams if s.timestamp is not None and s.consumers)

    def enqueue(self, steps: Iterable[AdmissionStep]) -> Future[None]:
        """Queue steps and admit what fits; the future completes when all of them are admitted."""
        answer = self._queue.enqueue(steps)
        self.admit_waiting()
        return answer

    def admit_waiting(self) -> None:
        """Admit waiting rows while there is room."""
        if self._queue.has_waiting:
            self._queue.admit_waiting(self._memory.fraction(*self._get_current()))

    def admit_when_idle(self) -> bool:
        """Admit rows that may unblock operators while nothing can run; answers whether any were admitted."""
        _, engine = self._get_current()
        waits = self._queue.has_waiting and not engine.runner.deadlines
        return waits and self._queue.admit_waiting(self._memory.fraction(*self._get_current()), idle=True)

    def refuse(self, error: Exception) -> None:
        """Fail all waiting requests with this error."""
        self._queue.refuse(error)

    def state_bytes(self) -> Mapping[str, float]:
        """Bytes of operator state by station."""
        return self._memory.state_bytes(self._get_current()[1])

    def status(self) -> IngestStatus:
        """Whether rows wait for admission, and the limits."""
        return self._queue.status()

    def explain_stuck(self) -> str:
        """Say what keeps a full domain from making room."""
        lagging = self._queue.lagging_streams()
        waits = f" and waits for stream {', '.join(map(repr, lagging))}" if lagging else ""
        return f"it is at its memory limit and blocked: {self._memory.describe_largest()}{waits}"

    def _count(self, stream: str, rows: Rows) -> float:
        """Count admitted rows; answers their bytes in all queues."""
        size = rows.memory()
        self._memory.note_admitted(size)
        return size * self._reader_counts.get(stream, 0)


def _finite(limit: float) -> float | None:
    return None if math.isinf(limit) else limit
