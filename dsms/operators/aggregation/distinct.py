"""The DISTINCT operator: emits each distinct row once, and retracts it when its last duplicate is gone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.key_table import KeyTable, nullable_columns, to_columns
from dsms.data.schema import Schema
from dsms.operators.aggregation.presence import KeyCounts
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator
from dsms.operators.instant_barrier import InstantBarrier


@dataclass(eq=False)
class DistinctOperator(Operator):
    """Emits a row when its first duplicate enters, and retracts it when the last one leaves."""

    cost: float = DEFAULT_ROW_COST_S
    schema: Schema = field(default_factory=lambda: Schema(()))
    is_time_driven: ClassVar[bool] = True
    _pending: InstantBarrier = field(default_factory=InstantBarrier, init=False, repr=False)
    _slots: KeyTable = field(default_factory=KeyTable, init=False, repr=False)
    _presence: KeyCounts = field(default_factory=KeyCounts, init=False, repr=False)

    def fresh(self, settings: Settings) -> DistinctOperator:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        complete = self._pending.add(batch, port)
        rows = complete.rows[0]
        out = Batch() if rows is None else self._changes(rows)
        seq = int(np.min(batch.seq, initial=2**62))
        return replace(out, seq=seq, watermark=complete.watermark, ended=complete.ended)

    def _changes(self, rows: Batch) -> Batch:
        slots = self._slots.of(nullable_columns(rows, tuple(self.schema)))
        counts = self._presence.apply_events(slots, rows.each("ts"), rows.each("sign"))
        flips, cells = counts.flips, counts.cells
        chosen = cells.in_time[flips[cells.in_time] != 0]
        chosen = chosen[np.lexsort((flips[chosen], cells.ts[chosen]))]  # at one instant, retractions first
        columns = to_columns(tuple(self.schema), self._slots.keys(cells.slot[chosen]))
        latest = cells.latest(rows.each("arrived"))[chosen]
        self._slots.release(counts.gone)
        return Batch(columns, len(chosen), ts=cells.ts[chosen], arrived=latest, sign=flips[chosen])
