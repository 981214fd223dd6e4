"""A relation's changes as a stream: what came, what went, or all there is at each change.

Arasu, Babu, Widom: "The CQL continuous query language: semantic foundations and query execution".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from dsms.batch import Batch
from dsms.errors import PlanError
from dsms.operators.base import ROW_COST, Aside, Operator
from dsms.operators.order import brought, merged
from dsms.operators.pending import Pending
from dsms.schema import Schema
from dsms.settings import Settings
from dsms.slots import Numbers, Slots, columned, nullable, reaching

KINDS = ("istream", "dstream", "rstream")


class _Relation:
    """Rows as slots with how many times each is there, in the order in which they came to be there."""

    def __init__(self) -> None:
        self.slots = Slots()
        self.counts = np.zeros(0, dtype=np.int64)
        self.order = np.zeros(0, dtype=np.int64)  # the slots there are

    def change(self, slots: Numbers, signs: Numbers) -> Numbers:
        """One instant's rows, of which only the sum counts; the answer is what was taken back and never there."""
        before = self.counts[slots] > 0
        np.add.at(self.counts, slots, signs)
        missing = np.unique(slots[self.counts[slots] < 0])
        missing = np.repeat(missing, -self.counts[missing])
        self.counts[missing] = 0
        come = slots[(signs > 0) & ~before & (self.counts[slots] > 0)]
        come = come[np.sort(np.unique(come, return_index=True)[1])]
        self.order = np.concatenate([self.order[self.counts[self.order] > 0], come])
        return missing

    def contents(self) -> Numbers:
        """The slot of every row there is."""
        return np.repeat(self.order, self.counts[self.order])


@dataclass(eq=False)
class Changes(Operator):
    """The rows that come to a relation, those that leave it, or its contents at every instant that brings some."""

    cost: float = ROW_COST
    kind: Literal["istream", "dstream", "rstream"] = "istream"
    schema: Schema = field(default_factory=lambda: Schema(()))
    _pending: Pending = field(default_factory=Pending, init=False, repr=False)
    _relation: _Relation = field(default_factory=_Relation, init=False, repr=False)
    _arrived: float = field(default=0.0, init=False, repr=False)  # of the latest row
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in KINDS:
            raise PlanError(f"{self.kind!r} makes no stream of a relation; there are {list(KINDS)}", "kind")

    def fresh(self, settings: Settings) -> Changes:
        return replace(self)

    @property
    def held(self) -> int:
        """The rows it holds: those that wait, and the different ones of the relation."""
        return len(self._pending) + len(self._relation.order)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if self.kind == "rstream":
            complete = self._pending.add(batch)
            shown = [self._contents(rows, batch) for rows in complete.rows if rows is not None]
            return merged(shown, batch, complete.upto, complete.ended)
        upto = int(batch.each("ts")[-1]) if batch.upto is None and len(batch) else batch.upto
        wanted = batch.each("sign") > 0 if self.kind == "istream" else batch.each("sign") < 0
        rows = batch if wanted.all() else batch.pick(wanted)
        return replace(rows, sign=1, upto=upto)

    def _contents(self, rows: Batch, source: Batch) -> Batch:
        """The whole relation after each of the instants."""
        names, relation = tuple(self.schema), self._relation
        slots = relation.slots.of(nullable(rows, names))
        relation.counts = reaching(relation.counts, relation.slots.high)
        ts, signs = rows.each("ts"), rows.each("sign")
        starts = np.flatnonzero(np.concatenate(([True], ts[1:] != ts[:-1])))
        shown = []
        for start, stop in zip(starts, [*starts[1:], len(ts)], strict=True):
            self._refuse(relation.change(slots[start:stop], signs[start:stop]), int(ts[start]))
            shown.append(relation.contents())
        lengths = list(map(len, shown))
        everything = np.concatenate(shown)
        columns = columned(names, relation.slots.keys(everything))
        touched = np.unique(slots)
        relation.slots.release(touched[relation.counts[touched] == 0])
        arrived = np.maximum.accumulate(np.maximum.reduceat(rows.each("arrived"), starts))
        arrived = np.maximum(arrived, self._arrived)
        self._arrived = float(arrived[-1])
        ts, arrived = np.repeat(ts[starts], lengths), np.repeat(arrived, lengths)
        return Batch(columns, len(everything), ts=ts, arrived=arrived, seq=brought(source)[1])

    def _refuse(self, slots: Numbers, ts: int) -> None:
        if len(slots):
            columns = columned(tuple(self.schema), self._relation.slots.keys(slots))
            reason = f"{len(slots)} rows taken back at {ts} that the relation does not have"
            self.asides.append(Aside("error", Batch(columns, len(slots), ts=ts, sign=-1), reason))
