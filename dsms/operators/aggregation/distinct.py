"""Each row once, however often it is there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dsms.batch import Batch
from dsms.operators.aggregation.presence import Presence
from dsms.operators.base import ROW_COST, Operator
from dsms.operators.pending import Pending
from dsms.schema import Schema
from dsms.settings import Settings
from dsms.slots import Slots, columned, nullable


@dataclass(eq=False)
class Distinct(Operator):
    """Puts a row out when the first of its kind comes, and takes it back when the last one goes."""

    cost: float = ROW_COST
    schema: Schema = field(default_factory=lambda: Schema(()))
    timed: ClassVar[bool] = True
    _pending: Pending = field(default_factory=Pending, init=False, repr=False)
    _slots: Slots = field(default_factory=Slots, init=False, repr=False)
    _presence: Presence = field(default_factory=Presence, init=False, repr=False)

    def fresh(self, settings: Settings) -> Distinct:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        complete = self._pending.add(batch, port)
        rows = complete.rows[0]
        out = Batch() if rows is None else self._changes(rows)
        seq = int(np.min(batch.seq, initial=2**62))
        return replace(out, seq=seq, upto=complete.upto, ended=complete.ended)

    def _changes(self, rows: Batch) -> Batch:
        slots = self._slots.of(nullable(rows, tuple(self.schema)))
        course = self._presence.follow(slots, rows.each("ts"), rows.each("sign"))
        flips, cells = course.flips, course.cells
        chosen = cells.in_time[flips[cells.in_time] != 0]
        chosen = chosen[np.lexsort((flips[chosen], cells.ts[chosen]))]  # at one instant, what goes first
        columns = columned(tuple(self.schema), self._slots.keys(cells.slot[chosen]))
        latest = cells.latest(rows.each("arrived"))[chosen]
        self._slots.release(course.gone)
        return Batch(columns, len(chosen), ts=cells.ts[chosen], arrived=latest, sign=flips[chosen])
