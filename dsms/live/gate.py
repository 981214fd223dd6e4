"""Where rows wait while a domain is full: they are let in, in order, as soon as there is room again.

Whoever brings them is answered only then, which is what stops producers: an acknowledgement is their credit.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from dsms.batch import Batch
from dsms.clock import stopwatch
from dsms.parcel import Parcel

ROOMY = 7 / 8  # of a limit: below this, what was full is open again
MORE = 5 / 4  # of a limit: up to this rows are let in where nothing can run, as what is waited for may be among them
Rows = Batch | Parcel
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """The most that a domain is to hold."""

    rows: float = math.inf
    bytes: float = math.inf

    def part(self, rows: float, size: float) -> float:
        """How much of the limits this is: 1 is all of one of them."""
        return max(rows / self.rows, size / self.bytes)


@dataclass(eq=False)
class _Visit:
    """Goods that came together: answered when the last of them is in, or by whoever lets them in all at once."""

    left: int = 1
    answer: Future[Any] = field(default_factory=Future)
    job: Callable[[], Any] | None = None

    def failed(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class _Entry(NamedTuple):
    """What is let in at once."""

    goods: Sequence[tuple[str, Rows]]
    visit: _Visit


class Gate:
    """Lets goods in while what is held is below the limits; belongs to the thread of a domain.

    `admit` is how, and answers the bytes that they take in all places; told False, that is done already.
    """

    def __init__(self, limits: Limits, admit: Callable[[str, Rows, bool], float]) -> None:
        self.limits, self._admit = limits, admit
        self._waiting: deque[_Entry] = deque()
        self._full = False
        self._since: float | None = None  # when the first of those that wait came
        self._seconds = 0.0  # in which somebody waited, up to then
        self._far: dict[str, float] = {}  # by stream: the latest timestamp that was let in, of those that have some
        self.stuck = False  # whether somebody waits, and nothing can come to pass here that would let them in

    @property
    def busy(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def come(self, goods: Sequence[tuple[str, Rows]]) -> Future[None]:
        """Goods have come; the answer is there once all of them are in."""
        visit = _Visit(len(goods))
        if not goods:
            visit.answer.set_result(None)
        self._waiting.extend(_Entry([each], visit) for each in goods)
        return visit.answer

    def together(self, goods: Sequence[tuple[str, Rows]], job: Callable[[], T]) -> Future[T]:
        """Goods have come that are to be let in all at once, by a job of their own; the answer is what that answers."""
        visit = _Visit(job=job)
        self._waiting.append(_Entry(goods, visit))
        return visit.answer

    def open(self, part: float, idle: bool = False) -> bool:
        """Let in what there is room for, while so much of the limits is held; whether that was any.

        Where nothing can run, only what comes can change that: then what is furthest behind in time is let in even if
        it is full, and anything up to a somewhat higher limit.
        """
        let_in = False
        while self._waiting:
            self._full = part >= (ROOMY if self._full else 1.0)
            place = 0 if not self._full else self._needed(part) if idle else None
            if place is None:
                break
            part += self._let_in(place)
            let_in = True
            if self._full:
                break  # it may be what was waited for
        self.stuck = idle and bool(self._waiting) and not let_in
        self._count()
        return let_in

    def refuse(self, error: Exception) -> None:
        """Let nobody in of those that wait."""
        for entry in self._waiting:
            entry.visit.failed(error)
        self._waiting.clear()
        self._count()

    def expect(self, streams: Iterable[str]) -> None:
        """These are the streams with timestamps: one of them that nothing has come by yet is furthest behind."""
        self._far = {stream: self._far.get(stream, -math.inf) for stream in streams}

    def behind(self) -> list[str]:
        """The streams with timestamps that others are ahead of."""
        most = max(self._far.values(), default=0.0)
        return [stream for stream, far in self._far.items() if far < most]

    def status(self) -> dict[str, Any]:
        """How things stand, as plain data."""
        limits = {"rows": self.limits.rows, "bytes": self.limits.bytes}
        return {
            "paused": self.busy,
            "seconds": self._seconds + (0.0 if self._since is None else stopwatch() - self._since),
            "waiting": sum(len(rows) for entry in list(self._waiting) for _, rows in entry.goods),
            "limits": {name: None if math.isinf(most) else most for name, most in limits.items()},
        }

    def _needed(self, part: float) -> int | None:
        """The place among those that wait of what is let in though it is full: None if none is."""
        behind = self.behind()
        entries = enumerate(self._waiting)
        late = [(self._far[stream], at) for at, entry in entries for stream, _ in entry.goods if stream in behind]
        return min(late)[1] if late else 0 if part < MORE else None

    def _let_in(self, place: int) -> float:
        """How much of the limits it takes."""
        goods, visit = self._waiting[place]
        del self._waiting[place]
        visit.left -= 1
        try:
            answer = None if visit.job is None else visit.job()
            sizes = [self._admit(stream, rows, visit.job is None) for stream, rows in goods]
        except Exception as error:  # what is wrong with some says nothing of the others
            visit.failed(error)
            return 0.0
        for stream, rows in goods:
            if stream in self._far and isinstance(rows, Parcel) and rows.latest is not None:
                self._far[stream] = max(rows.latest, self._far[stream])
        if not visit.left and not visit.answer.done():
            visit.answer.set_result(answer)
        return sum(self.limits.part(len(rows), size) for (_, rows), size in zip(goods, sizes, strict=True))

    def _count(self) -> None:
        """Add up how long somebody waited."""
        if self._since is not None and not self._waiting:
            self._seconds += stopwatch() - self._since
            self._since = None
        elif self._since is None and self._waiting:
            self._since = stopwatch()
