"""Turns a relation into a stream: its insertions (ISTREAM), deletions (DSTREAM) or all rows at each change (RSTREAM).

Arasu, Babu, Widom: "The CQL continuous query language: semantic foundations and query execution".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.data.dead_letter import DeadLetter
from dsms.data.key_table import KeyTable, Numbers, grow_to, nullable_columns, to_columns
from dsms.data.schema import Schema
from dsms.errors import PlanError
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator
from dsms.operators.instant_barrier import InstantBarrier
from dsms.operators.row_order import arrival_of, merge_in_time_order

STREAM_OPERATORS = ("istream", "dstream", "rstream")


class _RelationState:
    """The multiset of rows in a relation: a count for each distinct row, in the order of first insertion."""

    def __init__(self) -> None:
        self.slots = KeyTable()
        self.counts = np.zeros(0, dtype=np.int64)
        self.order = np.zeros(0, dtype=np.int64)  # the slots with a positive count

    def change(self, slots: Numbers, signs: Numbers) -> Numbers:
        """Apply the net change of one instant; return the slots of retracted rows that the relation does not hold."""
        before = self.counts[slots] > 0
        np.add.at(self.counts, slots, signs)
        missing = np.unique(slots[self.counts[slots] < 0])
        missing = np.repeat(missing, -self.counts[missing])
        self.counts[missing] = 0
        added = slots[(signs > 0) & ~before & (self.counts[slots] > 0)]
        added = added[np.sort(np.unique(added, return_index=True)[1])]
        self.order = np.concatenate([self.order[self.counts[self.order] > 0], added])
        return missing

    def contents(self) -> Numbers:
        """Return the slot of every row, repeated by its count."""
        return np.repeat(self.order, self.counts[self.order])


@dataclass(eq=False)
class RelationToStreamOperator(Operator):
    """Emits a relation's inserted rows, its deleted rows, or its contents at each instant with changes."""

    cost: float = DEFAULT_ROW_COST_S
    kind: Literal["istream", "dstream", "rstream"] = "istream"
    schema: Schema = field(default_factory=lambda: Schema(()))
    _pending: InstantBarrier = field(default_factory=InstantBarrier, init=False, repr=False)
    _relation: _RelationState = field(default_factory=_RelationState, init=False, repr=False)
    _arrived: float = field(default=0.0, init=False, repr=False)  # of the latest row
    is_time_driven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in STREAM_OPERATORS:
            raise PlanError(
                f"{self.kind!r} is not a relation-to-stream operator; there are {list(STREAM_OPERATORS)}", "kind"
            )

    def fresh(self, settings: Settings) -> RelationToStreamOperator:
        return replace(self)

    @property
    def held(self) -> int:
        """The number of rows it holds: waiting rows, and distinct rows of the relation."""
        return len(self._pending) + len(self._relation.order)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        if self.kind == "rstream":
            complete = self._pending.add(batch)
            shown = [self._contents(rows, batch) for rows in complete.rows if rows is not None]
            return merge_in_time_order(shown, batch, complete.watermark, complete.ended)
        watermark = int(batch.each("ts")[-1]) if batch.watermark is None and len(batch) else batch.watermark
        chosen = batch.each("sign") > 0 if self.kind == "istream" else batch.each("sign") < 0
        rows = batch if chosen.all() else batch.pick(chosen)
        return replace(rows, sign=1, watermark=watermark)

    def _contents(self, rows: Batch, source: Batch) -> Batch:
        """Return the whole relation after each instant."""
        names, relation = tuple(self.schema), self._relation
        slots = relation.slots.of(nullable_columns(rows, names))
        relation.counts = grow_to(relation.counts, relation.slots.high)
        ts, signs = rows.each("ts"), rows.each("sign")
        starts = np.flatnonzero(np.concatenate(([True], ts[1:] != ts[:-1])))
        shown = []
        for start, stop in zip(starts, [*starts[1:], len(ts)], strict=True):
            self._refuse(relation.change(slots[start:stop], signs[start:stop]), int(ts[start]))
            shown.append(relation.contents())
        lengths = list(map(len, shown))
        everything = np.concatenate(shown)
        columns = to_columns(names, relation.slots.keys(everything))
        touched = np.unique(slots)
        relation.slots.release(touched[relation.counts[touched] == 0])
        arrived = np.maximum.accumulate(np.maximum.reduceat(rows.each("arrived"), starts))
        arrived = np.maximum(arrived, self._arrived)
        self._arrived = float(arrived[-1])
        ts, arrived = np.repeat(ts[starts], lengths), np.repeat(arrived, lengths)
        return Batch(columns, len(everything), ts=ts, arrived=arrived, seq=arrival_of(source)[1])

    def _refuse(self, slots: Numbers, ts: int) -> None:
        if len(slots):
            columns = to_columns(tuple(self.schema), self._relation.slots.keys(slots))
            reason = f"{len(slots)} rows retracted at {ts} that the relation does not hold"
            self.dead_letters.append(DeadLetter("error", Batch(columns, len(slots), ts=ts, sign=-1), reason))
