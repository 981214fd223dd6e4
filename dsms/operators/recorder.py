"""The recorder ->(w): writes rows to a window and puts out first what leaves it, then the rows.

Getta and Vossough: "Optimization of Data Stream Processing".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

import numpy as np

from dsms.algebra import Window
from dsms.batch import Batch, Column
from dsms.errors import PlanError
from dsms.operators.base import ROW_COST, Operator
from dsms.operators.order import brought, merged
from dsms.operators.pending import BEGINNING, Complete, Pending
from dsms.settings import Settings

Time = TypeVar("Time", int, Column)
LONGEST = 2**60  # microseconds, some 36,000 years: sums with timestamps stay within 64 bits
SMALL = 4096  # rows: smaller pieces of a window are put together, so that single rows do not cost a batch each


class _Rows:
    """Rows in the order of their timestamps: new ones at the end, the oldest let go at the front."""

    def __init__(self) -> None:
        self._pieces: deque[Batch] = deque()
        self._whole = 0  # rows that the memory under the first piece holds, where some are already taken
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def first(self) -> int:
        """The oldest row's timestamp."""
        return int(self._pieces[0].each("ts")[0])

    def add(self, rows: Batch) -> None:
        if not len(rows):
            return
        self._count += len(rows)
        rows = replace(rows, ts=rows.each("ts"))
        while self._pieces and len(self._pieces[-1]) <= len(rows) < SMALL:
            rows = Batch.joined([self._pieces.pop(), rows])
        if not self._pieces:
            self._whole = len(rows)
        self._pieces.append(rows)

    def before(self, ts: int) -> int:
        """How many rows are older than an instant."""
        count = 0
        for piece in self._pieces:
            older = int(np.searchsorted(piece.each("ts"), ts))
            count += older
            if older < len(piece):
                break
        return count

    def take(self, count: int) -> list[Batch]:
        """The oldest rows, let go, piece by piece."""
        self._count -= count
        taken: list[Batch] = []
        while count:
            head = self._pieces.popleft()
            if len(head) > count:
                head, rest = head.cut(count)
                self._keep(rest, len(head) + len(rest))
            elif self._pieces:
                self._whole = len(self._pieces[0])
            taken.append(head)
            count -= len(head)
        return taken

    def _keep(self, rest: Batch, before: int) -> None:
        """What is left of the first piece; copied once it is less than half, so that the memory of the rest is free."""
        self._whole = max(self._whole, before)
        if 2 * len(rest) < self._whole:
            rest, self._whole = rest.pick(np.arange(len(rest))), len(rest)
        self._pieces.appendleft(rest)


@dataclass(eq=False)
class Recorder(Operator):
    """A window on a stream: every row with sign +1 when it comes to count, with sign -1 when it ceases to."""

    cost: float = ROW_COST
    window: Window = field(default_factory=Window)
    _pending: Pending = field(default_factory=Pending, init=False, repr=False)
    _coming: _Rows = field(default_factory=_Rows, init=False, repr=False)  # with slide: till the next boundary
    _inside: _Rows = field(default_factory=_Rows, init=False, repr=False)
    _seen: int = field(default=0, init=False, repr=False)  # rows, where they are counted
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        kind, length, slide = self.window.kind, self.window.length, self.window.slide
        if kind not in ("rows", "range", "unbounded"):
            raise PlanError(f"window of kind {kind!r}: there are 'rows', 'range' and 'unbounded'", "window")
        if not (0 <= length <= LONGEST and 0 <= slide <= LONGEST):
            raise PlanError(f"window of length {length} and slide {slide}: 0 to {LONGEST} is wanted", "window")
        if slide and kind == "unbounded":
            raise PlanError(
                f"window of kind {kind!r} with slide {slide}: only 'range' and 'rows' can have one", "window"
            )

    def fresh(self, settings: Settings) -> Recorder:
        return replace(self)

    @property
    def held(self) -> int:
        """The rows it holds."""
        return len(self._pending) + len(self._coming) + len(self._inside)

    def deadline(self) -> int | None:
        if self.window.kind != "range":
            return None
        waiting, slide = self._pending.first(), self.window.slide
        due = [self._leaving(self._inside.first())] if len(self._inside) else []
        if len(self._coming):
            due.append(self._entering(self._coming.first()))
        if waiting is not None and not slide:
            due.append(self._leaving(waiting))
        elif waiting is not None and self._entering(waiting) < self._leaving(waiting):
            due.append(self._entering(waiting))
        return min(due, default=None)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if np.any(np.asarray(batch.sign) < 0):
            raise ValueError("a window was given rows with sign -1: it takes streams, to which rows are only added")
        if self.window.kind == "unbounded":
            return batch
        complete = self._pending.add(batch)
        if self.window.kind == "rows" and self.window.slide:
            return self._by_steps(complete, batch)
        if self.window.kind == "rows":
            return merged(self._by_count(complete.rows[0]), batch, complete.upto, complete.ended)
        if self.window.slide:
            return self._by_boundary(complete, batch)
        rows = complete.rows[0]
        if rows is not None:
            self._inside.add(rows)
        left = self._inside.take(self._inside.before(complete.upto - self.window.length - 1))
        return merged((*self._expired(left, batch), rows), batch, complete.upto, complete.ended)

    def _by_count(self, rows: Batch | None) -> tuple[Batch | None, Batch | None]:
        """What leaves a window of the last rows, and what comes; not what would do both at one instant."""
        if rows is None:
            return None, None
        self._inside.add(rows)
        taken = self._inside.take(max(0, len(self._inside) - self.window.length))
        if not taken:
            return None, rows
        left = Batch.joined(taken)
        pushing = rows.pick(slice(len(rows) - len(left), None))  # each row that leaves is pushed out by one that came
        at = pushing.each("ts")
        shown = left.each("ts") != at
        gone = replace(left, ts=at, sign=-1, arrived=pushing.arrived, seq=pushing.seq)
        if shown.all():
            return gone, rows
        come = np.ones(len(rows), dtype=bool)
        own = len(rows) - len(self._inside)  # how many of those that leave have only just come
        come[:own] = shown[len(left) - own :]
        return gone.pick(shown), rows.pick(come)

    def _by_boundary(self, complete: Complete, source: Batch) -> Batch:
        """What leaves and what comes at every boundary there is now, b: inside are the rows from b - length to b."""
        upto, ended, (rows,) = complete
        if rows is not None:
            ts = rows.each("ts")
            inside = self._entering(ts) < self._leaving(ts)  # else it falls between two windows
            self._coming.add(rows if inside.all() else rows.pick(inside))
        if ended and upto > BEGINNING:
            # Time goes on until the last rows have been shown: those of all streams, so that it stops for all windows
            # at the same instant, whatever conditions have let through to them.
            upto = self._entering(upto - 1)
        last = upto - upto % self.window.slide
        come = self._coming.take(self._coming.before(last))
        for piece in come:
            self._inside.add(piece)
        arrived, seq = brought(source)
        shown = [replace(piece, ts=self._entering(piece.each("ts")), arrived=arrived, seq=seq) for piece in come]
        left = self._inside.take(self._inside.before(last - self.window.length))
        done = upto + 1 if upto == last and upto > BEGINNING else upto  # nothing more will come at this boundary
        return merged((*self._expired(left, source), *shown), source, done, ended)

    def _by_steps(self, complete: Complete, source: Batch) -> Batch:
        """The same by rows: a boundary is every so-many-th row, and inside are the rows numbered b - length to b.

        Rows are held with their number for a timestamp: they come and go at those of the rows that are boundaries.
        """
        upto, ended, (rows,) = complete
        start = self._seen
        instants = np.empty(0, dtype=np.int64) if rows is None else rows.each("ts")
        if rows is not None:
            numbers = start + np.arange(len(rows))
            inside = self._entering(numbers) < self._leaving(numbers)
            self._coming.add(replace(rows, ts=numbers).pick(inside))
            self._seen += len(rows)
        last = self._seen - self._seen % self.window.slide
        if ended and self._seen > last:  # the last rows are shown as they would be at the next boundary
            last += self.window.slide
        instants = np.append(instants, upto)  # when that is

        def at(boundary: Column) -> Column:
            when: Column = instants[np.clip(boundary - 1 - start, 0, len(instants) - 1)]
            return when

        come = self._coming.take(self._coming.before(last))
        for piece in come:
            self._inside.add(piece)
        left = self._inside.take(self._inside.before(last - self.window.length))
        arrived, seq = brought(source)
        parts = []
        for sign, pieces in ((-1, left), (1, come)):
            for piece in pieces:
                enters, leaves = self._entering(piece.each("ts")), self._leaving(piece.each("ts"))
                # What comes and goes at one instant was never there.
                shown = (enters <= start) | (leaves > last) | (at(enters) != at(leaves))
                ts = at(leaves if sign < 0 else enters)
                parts.append(replace(piece, ts=ts, sign=sign, arrived=arrived, seq=seq).pick(shown))
        return merged(parts, source, upto + 1 if ended else upto, ended)

    def _expired(self, rows: list[Batch], source: Batch) -> list[Batch]:
        arrived, seq = brought(source)
        return [replace(part, ts=self._leaving(part.each("ts")), sign=-1, arrived=arrived, seq=seq) for part in rows]

    def _entering(self, ts: Time) -> Time:
        """With slide: the first boundary after an instant."""
        return (ts // self.window.slide + 1) * self.window.slide

    def _leaving(self, ts: Time) -> Time:
        return self._entering(ts + self.window.length) if self.window.slide else ts + self.window.length + 1
