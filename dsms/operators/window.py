"""The window operator: holds the rows of a stream's window, and emits a retraction for each row that leaves it.

It is the recorder ->(w) of Getta and Vossough: "Optimization of Data Stream Processing".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

import numpy as np

from dsms.algebra import Window
from dsms.config.run import Settings
from dsms.data.batch import Batch, Column
from dsms.errors import PlanError
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator
from dsms.operators.instant_barrier import MIN_TIMESTAMP, CompleteRows, InstantBarrier
from dsms.operators.row_order import arrival_of, merge_in_time_order

Time = TypeVar("Time", int, Column)
MAX_WINDOW_US = 2**60  # some 36,000 years: sums with timestamps stay within 64 bits
COALESCE_BELOW_ROWS = 4096  # smaller pieces of a window are merged, so that single rows do not cost a batch each


class _RowQueue:
    """A queue of rows in timestamp order: rows are added at the end and taken from the front."""

    def __init__(self) -> None:
        self._pieces: deque[Batch] = deque()
        self._whole = 0  # rows in the memory under the first piece, including rows already taken from it
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def first(self) -> int:
        """Return the oldest row's timestamp."""
        return int(self._pieces[0].each("ts")[0])

    def add(self, rows: Batch) -> None:
        if not len(rows):
            return
        self._count += len(rows)
        rows = replace(rows, ts=rows.each("ts"))
        while self._pieces and len(self._pieces[-1]) <= len(rows) < COALESCE_BELOW_ROWS:
            rows = Batch.joined([self._pieces.pop(), rows])
        if not self._pieces:
            self._whole = len(rows)
        self._pieces.append(rows)

    def before(self, ts: int) -> int:
        """Count the rows older than an instant."""
        count = 0
        for piece in self._pieces:
            older = int(np.searchsorted(piece.each("ts"), ts))
            count += older
            if older < len(piece):
                break
        return count

    def take(self, count: int) -> list[Batch]:
        """Remove and return the oldest rows, piece by piece."""
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
        """Put back the rest of the first piece; copy it once it is less than half, to free the memory of the piece."""
        self._whole = max(self._whole, before)
        if 2 * len(rest) < self._whole:
            rest, self._whole = rest.pick(np.arange(len(rest))), len(rest)
        self._pieces.appendleft(rest)


@dataclass(eq=False)
class WindowOperator(Operator):
    """A window over a stream: emits each row with sign +1 when it enters the window and with sign -1 when it leaves."""

    cost: float = DEFAULT_ROW_COST_S
    window: Window = field(default_factory=Window)
    _pending: InstantBarrier = field(default_factory=InstantBarrier, init=False, repr=False)
    _coming: _RowQueue = field(default_factory=_RowQueue, init=False, repr=False)  # with slide: until the next boundary
    _inside: _RowQueue = field(default_factory=_RowQueue, init=False, repr=False)
    _seen: int = field(default=0, init=False, repr=False)  # rows so far, for a window of rows with slide
    is_time_driven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        kind, length, slide = self.window.kind, self.window.length, self.window.slide
        if kind not in ("rows", "range", "unbounded"):
            raise PlanError(f"window of kind {kind!r}: there are 'rows', 'range' and 'unbounded'", "window")
        if not (0 <= length <= MAX_WINDOW_US and 0 <= slide <= MAX_WINDOW_US):
            raise PlanError(
                f"window of length {length} and slide {slide}: both must be from 0 to {MAX_WINDOW_US}", "window"
            )
        if slide and kind == "unbounded":
            raise PlanError(
                f"window of kind {kind!r} with slide {slide}: only 'range' and 'rows' can have one", "window"
            )

    def fresh(self, settings: Settings) -> WindowOperator:
        return replace(self)

    @property
    def held(self) -> int:
        """The number of rows it holds."""
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
            raise ValueError("a window read rows with sign -1: its input must be append-only")
        if self.window.kind == "unbounded":
            return batch
        complete = self._pending.add(batch)
        if self.window.kind == "rows" and self.window.slide:
            return self._slide_by_rows(complete, batch)
        if self.window.kind == "rows":
            return merge_in_time_order(self._advance_rows(complete.rows[0]), batch, complete.watermark, complete.ended)
        if self.window.slide:
            return self._slide_by_time(complete, batch)
        rows = complete.rows[0]
        if rows is not None:
            self._inside.add(rows)
        expired = self._inside.take(self._inside.before(complete.watermark - self.window.length - 1))
        return merge_in_time_order((*self._retract(expired, batch), rows), batch, complete.watermark, complete.ended)

    def _advance_rows(self, rows: Batch | None) -> tuple[Batch | None, Batch | None]:
        """Return the rows that leave and the rows that enter a window of the last N rows, without rows that do both."""
        if rows is None:
            return None, None
        self._inside.add(rows)
        taken = self._inside.take(max(0, len(self._inside) - self.window.length))
        if not taken:
            return None, rows
        evicted = Batch.joined(taken)
        evicting = rows.pick(slice(len(rows) - len(evicted), None))  # each new row evicts one row
        at = evicting.each("ts")
        shown = evicted.each("ts") != at
        retracted = replace(evicted, ts=at, sign=-1, arrived=evicting.arrived, seq=evicting.seq)
        if shown.all():
            return retracted, rows
        entering = np.ones(len(rows), dtype=bool)
        own = len(rows) - len(self._inside)  # evicted rows that are among the new rows
        entering[:own] = shown[len(evicted) - own :]
        return retracted.pick(shown), rows.pick(entering)

    def _slide_by_time(self, complete: CompleteRows, source: Batch) -> Batch:
        """Emit the rows that leave and enter at each boundary b passed; the window holds rows from b - length to b."""
        watermark, ended, (rows,) = complete
        if rows is not None:
            ts = rows.each("ts")
            inside = self._entering(ts) < self._leaving(ts)  # otherwise the row falls between two windows
            self._coming.add(rows if inside.all() else rows.pick(inside))
        if ended and watermark > MIN_TIMESTAMP:
            # At the end, advance to the boundary that emits the last rows. The watermark is that of all streams, so
            # all windows stop at the same instant, no matter which rows their filters let through.
            watermark = self._entering(watermark - 1)
        last = watermark - watermark % self.window.slide
        entered = self._coming.take(self._coming.before(last))
        for piece in entered:
            self._inside.add(piece)
        arrived, seq = arrival_of(source)
        shown = [replace(piece, ts=self._entering(piece.each("ts")), arrived=arrived, seq=seq) for piece in entered]
        expired = self._inside.take(self._inside.before(last - self.window.length))
        is_complete = watermark == last and watermark > MIN_TIMESTAMP  # this boundary emits nothing more
        done = watermark + 1 if is_complete else watermark
        return merge_in_time_order((*self._retract(expired, source), *shown), source, done, ended)

    def _slide_by_rows(self, complete: CompleteRows, source: Batch) -> Batch:
        """Emit the rows that leave and enter at each boundary b, every `slide` rows; the window holds b - length to b.

        Rows are held with their row number as timestamp, and are emitted with the timestamp of the boundary's row.
        """
        watermark, ended, (rows,) = complete
        start = self._seen
        instants = np.empty(0, dtype=np.int64) if rows is None else rows.each("ts")
        if rows is not None:
            numbers = start + np.arange(len(rows))
            inside = self._entering(numbers) < self._leaving(numbers)
            self._coming.add(replace(rows, ts=numbers).pick(inside))
            self._seen += len(rows)
        last = self._seen - self._seen % self.window.slide
        if ended and self._seen > last:  # the next boundary emits the last rows
            last += self.window.slide
        instants = np.append(instants, watermark)  # the timestamp of that boundary

        def at(boundary: Column) -> Column:
            timestamps: Column = instants[np.clip(boundary - 1 - start, 0, len(instants) - 1)]
            return timestamps

        entered = self._coming.take(self._coming.before(last))
        for piece in entered:
            self._inside.add(piece)
        expired = self._inside.take(self._inside.before(last - self.window.length))
        arrived, seq = arrival_of(source)
        parts = []
        for sign, pieces in ((-1, expired), (1, entered)):
            for piece in pieces:
                enters, leaves = self._entering(piece.each("ts")), self._leaving(piece.each("ts"))
                # A row that enters and leaves at one instant is never emitted.
                shown = (enters <= start) | (leaves > last) | (at(enters) != at(leaves))
                ts = at(leaves if sign < 0 else enters)
                parts.append(replace(piece, ts=ts, sign=sign, arrived=arrived, seq=seq).pick(shown))
        return merge_in_time_order(parts, source, watermark + 1 if ended else watermark, ended)

    def _retract(self, rows: list[Batch], source: Batch) -> list[Batch]:
        arrived, seq = arrival_of(source)
        return [replace(part, ts=self._leaving(part.each("ts")), sign=-1, arrived=arrived, seq=seq) for part in rows]

    def _entering(self, ts: Time) -> Time:
        """Return the first boundary after an instant; only for a window with slide."""
        return (ts // self.window.slide + 1) * self.window.slide

    def _leaving(self, ts: Time) -> Time:
        return self._entering(ts + self.window.length) if self.window.slide else ts + self.window.length + 1
