"""The way in for a stream: its timestamps from a column, its rows in their order as far as lateness is declared."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dsms.batch import NULLS, Batch, Column
from dsms.errors import PlanError, RowError, existing
from dsms.operators.base import ROW_COST, Aside, Operator
from dsms.operators.order import merged
from dsms.operators.pending import BEGINNING, Pending
from dsms.schema import FARTHEST
from dsms.settings import Settings


@dataclass(eq=False)
class Arrange(Operator):
    """Puts rows in order that come at most `late` microseconds after younger ones; those later still go aside."""

    cost: float = ROW_COST
    column: str | None = None  # where the timestamps are; None: the rows have theirs already
    late: int = 0
    on_error: str = "fail"  # a row without a timestamp, or one out of range, ends the run or goes aside
    _pending: Pending = field(default_factory=Pending, init=False, repr=False)
    _highest: int = field(default=BEGINNING, init=False, repr=False)
    _promised: int = field(default=BEGINNING, init=False, repr=False)  # by `upto` of what came
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.late < 0:
            raise PlanError(f"late is {self.late}: it must not be negative", "late")

    def fresh(self, settings: Settings) -> Arrange:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        rows = self._punctual(self._stamped(batch)) if len(batch) else batch
        if batch.upto is not None:
            self._promised = max(self._promised, batch.upto)
        passed = self._highest if batch.ended else max(BEGINNING, self._highest - self.late)
        # A row as old as may still come need not wait for its equals: those that come later go after it.
        ready = self._pending.add(replace(rows, upto=max(self._promised, passed + 1)))
        upto = max(self._promised, passed + 1 if batch.ended else passed)
        return merged(ready.rows, batch, upto, batch.ended)

    def _stamped(self, batch: Batch) -> Batch:
        """The rows with their timestamps; those without one go aside."""
        if self.column is None:
            return batch
        if self.column not in batch.columns:
            raise ValueError(f"no column {self.column!r} to take timestamps from{existing(self.column, batch.columns)}")
        rows = replace(batch, ts=batch.columns[self.column].astype(np.int64, copy=False))
        missing = batch.columns.get(self.column + NULLS)
        if missing is not None and missing.any():
            self._refuse(rows, missing, f"no timestamp: {self.column!r} is null")
            rows = rows.pick(~missing)
        ts = rows.each("ts")
        if not len(ts) or (ts.max() < FARTHEST and ts.min() > -FARTHEST):
            return rows
        astray = (ts >= FARTHEST) | (ts <= -FARTHEST)
        self._refuse(
            rows, astray, f"{self.column!r} is out of range: microseconds, less than 2**54 from 1970, are wanted"
        )
        return rows.pick(~astray)

    def _refuse(self, rows: Batch, which: Column, reason: str) -> None:
        if self.on_error == "fail":
            raise RowError(f"{reason}; the row is {rows.pick(which).records()[0]}")
        self._set_aside("error", rows, which, reason)

    def _punctual(self, rows: Batch) -> Batch:
        """The rows that are not too late, each measured by those before it, whatever batch they came in."""
        ts = rows.each("ts")
        if not len(ts):
            return rows
        least = max(self._promised, self._highest - self.late)
        if ts[0] >= least and not np.any(ts[1:] < ts[:-1]):
            self._highest = max(self._highest, int(ts[-1]))
            return rows
        highest = np.maximum.accumulate(np.concatenate(([self._highest], ts)))
        behind = np.maximum(highest[:-1] - self.late, self._promised) - ts
        self._highest = int(highest[-1])
        late = behind > 0
        if not late.any():
            return rows
        self._set_aside("late", rows, late, self._reason(behind[late]))
        return rows.pick(~late)

    def _reason(self, behind: Column) -> str:
        how = f"{behind.max()} microseconds" if len(behind) == 1 else f"up to {behind.max()} microseconds"
        return f"too late by {how}: {self.late} microseconds behind the latest row are declared"

    def _set_aside(self, kind: str, rows: Batch, which: Column, reason: str) -> None:
        self.asides.append(Aside(kind, replace(rows.pick(which), upto=None, ended=False), reason))
