"""Sorts a stream by event time: reads timestamps from a column, waits for late rows, rejects rows that are too late."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dsms.config.run import Settings
from dsms.data.batch import NULLS_SUFFIX, Batch, Column
from dsms.data.dead_letter import DeadLetter
from dsms.data.schema import TIMESTAMP_LIMIT_US
from dsms.errors import PlanError, RowError, existing
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator
from dsms.operators.instant_barrier import MIN_TIMESTAMP, InstantBarrier
from dsms.operators.row_order import merge_in_time_order


@dataclass(eq=False)
class ReorderOperator(Operator):
    """Sorts rows that arrive at most `late` microseconds after younger ones; later rows become dead letters."""

    cost: float = DEFAULT_ROW_COST_S
    column: str | None = None  # of the timestamps; None: the rows already carry theirs
    late: int = 0
    on_error: str = "fail"  # a row without a valid timestamp ends the run, or is rejected
    _pending: InstantBarrier = field(default_factory=InstantBarrier, init=False, repr=False)
    _highest: int = field(default=MIN_TIMESTAMP, init=False, repr=False)
    _promised: int = field(default=MIN_TIMESTAMP, init=False, repr=False)  # the highest watermark received
    is_time_driven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.late < 0:
            raise PlanError(f"late is {self.late}: it must not be negative", "late")

    def fresh(self, settings: Settings) -> ReorderOperator:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        rows = self._reject_late(self._set_timestamps(batch)) if len(batch) else batch
        if batch.watermark is not None:
            self._promised = max(self._promised, batch.watermark)
        passed = self._highest if batch.ended else max(MIN_TIMESTAMP, self._highest - self.late)
        # A row as old as the oldest that may still arrive does not wait: rows of its timestamp that follow go after it.
        ready = self._pending.add(replace(rows, watermark=max(self._promised, passed + 1)))
        watermark = max(self._promised, passed + 1 if batch.ended else passed)
        return merge_in_time_order(ready.rows, batch, watermark, batch.ended)

    def _set_timestamps(self, batch: Batch) -> Batch:
        """Return the rows with their timestamps; reject the rows without one."""
        if self.column is None:
            return batch
        if self.column not in batch.columns:
            raise ValueError(f"no column {self.column!r} to take timestamps from{existing(self.column, batch.columns)}")
        rows = replace(batch, ts=batch.columns[self.column].astype(np.int64, copy=False))
        missing = batch.columns.get(self.column + NULLS_SUFFIX)
        if missing is not None and missing.any():
            self._refuse(rows, missing, f"no timestamp: {self.column!r} is null")
            rows = rows.pick(~missing)
        ts = rows.each("ts")
        if not len(ts) or (ts.max() < TIMESTAMP_LIMIT_US and ts.min() > -TIMESTAMP_LIMIT_US):
            return rows
        invalid = (ts >= TIMESTAMP_LIMIT_US) | (ts <= -TIMESTAMP_LIMIT_US)
        self._refuse(
            rows, invalid, f"{self.column!r} is out of range: it must be in microseconds, less than 2**54 from 1970"
        )
        return rows.pick(~invalid)

    def _refuse(self, rows: Batch, which: Column, reason: str) -> None:
        if self.on_error == "fail":
            raise RowError(f"{reason}; the row is {rows.pick(which).records()[0]}")
        self._reject("error", rows, which, reason)

    def _reject_late(self, rows: Batch) -> Batch:
        """Return the rows that are not too late; each is compared with all rows before it, in any batch."""
        ts = rows.each("ts")
        if not len(ts):
            return rows
        oldest_allowed = max(self._promised, self._highest - self.late)
        if ts[0] >= oldest_allowed and not np.any(ts[1:] < ts[:-1]):
            self._highest = max(self._highest, int(ts[-1]))
            return rows
        highest = np.maximum.accumulate(np.concatenate(([self._highest], ts)))
        behind = np.maximum(highest[:-1] - self.late, self._promised) - ts
        self._highest = int(highest[-1])
        late = behind > 0
        if not late.any():
            return rows
        self._reject("late", rows, late, self._reason(behind[late]))
        return rows.pick(~late)

    def _reason(self, behind: Column) -> str:
        how = f"{behind.max()} microseconds" if len(behind) == 1 else f"up to {behind.max()} microseconds"
        return f"too late by {how}: the stream declares at most {self.late} microseconds behind the latest row"

    def _reject(self, kind: str, rows: Batch, which: Column, reason: str) -> None:
        self.dead_letters.append(DeadLetter(kind, replace(rows.pick(which), watermark=None, ended=False), reason))
