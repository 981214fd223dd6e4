"""The aggregate operator: keeps counts, sums, averages, minima and maxima of each group up to date."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dsms.algebra import Aggregation
from dsms.config.run import Settings
from dsms.data.batch import Batch, Column
from dsms.data.dead_letter import DeadLetter
from dsms.data.key_table import KeyTable, Nullable, normalize_keys, nullable_columns, to_columns
from dsms.data.schema import DTYPES, Schema
from dsms.errors import PlanError, RowError, existing
from dsms.operators.aggregation.block import AggregationBlock, SumOverflow
from dsms.operators.aggregation.cells import GroupInstants, KeyedValues
from dsms.operators.aggregation.extremes import AppendOnlyExtreme, RetractableExtreme
from dsms.operators.aggregation.members import DistinctCount, DistinctValues
from dsms.operators.aggregation.presence import KeyCounts
from dsms.operators.aggregation.sums import CountAccumulator, FloatSum, IntegerSum
from dsms.operators.base import DEFAULT_ROW_COST_S, Operator
from dsms.operators.instant_barrier import InstantBarrier

FUNCTIONS = ("count", "sum", "avg", "min", "max", "count distinct")
ValuesAndNulls = tuple[Column, Column]  # values, and where they are null


class Accumulator(Protocol):
    """The state of one aggregation for all groups."""

    def after(self, block: AggregationBlock) -> Nullable:
        """Apply a block of changes, and return the group's value after each cell."""


class EmittedValues:
    """One aggregation's value in each group's row as last emitted."""

    def __init__(self, accumulator: Accumulator, dtype: np.dtype[np.generic]) -> None:
        self._accumulator = accumulator
        self.dtype = dtype
        # A slot without an entry is null.
        self._values, self._is_filled = KeyedValues(dtype), KeyedValues(np.bool_)

    def update(self, block: AggregationBlock) -> tuple[ValuesAndNulls, ValuesAndNulls, NDArray[np.bool_]]:
        """Apply a block of changes; return the values before and after each cell, and where they differ."""
        values, nulls = self._accumulator.after(block)
        never_null = nulls is None
        nulls = np.zeros(len(values), dtype=bool) if nulls is None else nulls
        values = normalize_keys(values, nulls)
        old_nulls = nulls if never_null else ~self._is_filled.before(block.cells, ~nulls)
        old = normalize_keys(self._values.before(block.cells, values), old_nulls)
        differs = values != old
        if values.dtype.kind == "f":
            differs &= ~(np.isnan(values) & np.isnan(old))
        differs = np.where(nulls | old_nulls, nulls != old_nulls, differs).astype(bool)
        self._values.keep(block.cells, values)
        self._is_filled.keep(block.cells, ~nulls)
        return (old, old_nulls), (values, nulls), differs


@dataclass(eq=False)
class AggregateOperator(Operator):
    """Keeps one row for each group: retracts the old row and emits the new one at each instant that changes it.

    Without keys it emits one row at the first instant with input rows, or at the end if the input has none.
    """

    cost: float = DEFAULT_ROW_COST_S
    schema: Schema = field(default_factory=lambda: Schema(()))  # of the input
    keys: tuple[str, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    emit_unchanged: bool = False  # whether it also emits rows of groups that an instant touches without changing them
    on_error: str = "fail"  # a sum that overflows int64 ends the run, or becomes null and a dead letter
    is_append_only: bool = False  # whether the input never retracts: then min and max need not keep all values
    is_time_driven: ClassVar[bool] = True
    _pending: InstantBarrier = field(default_factory=InstantBarrier, init=False, repr=False)
    _slots: KeyTable = field(default_factory=KeyTable, init=False, repr=False)
    _presence: KeyCounts = field(default_factory=KeyCounts, init=False, repr=False)
    _emitted: list[EmittedValues] = field(default_factory=list, init=False, repr=False)
    _has_total: bool = field(default=False, init=False, repr=False)  # without keys: whether the one row is emitted

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in self.keys:
            self.schema[key]  # raises if there is no such column
        members = {a.column: DistinctValues(a.column) for a in self.aggregations if a.column is not None}
        for aggregation in self.aggregations:
            accumulator, dtype = _make_accumulator(aggregation, self.schema, members, self.is_append_only)
            self._emitted.append(EmittedValues(accumulator, dtype))

    def fresh(self, settings: Settings) -> AggregateOperator:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        complete = self._pending.add(batch, port)
        rows = complete.rows[0]
        out = Batch()
        if rows is not None:
            out = self._changes(rows)
        elif complete.ended and not self.keys and not self._has_total:
            out = self._emit_empty_total(complete.watermark - 1, batch)
        seq = int(np.min(batch.seq, initial=2**62))
        return replace(out, seq=seq, watermark=complete.watermark, ended=complete.ended)

    def _emit_empty_total(self, ts: int, batch: Batch) -> Batch:
        """Return the row of an empty input without keys: counts are 0, all other aggregates are null."""
        self._has_total = True
        counts = [aggregation.function.startswith("count") for aggregation in self.aggregations]
        nulls = [np.array([not count]) for count in counts]
        emitted = zip(self._emitted, nulls, strict=True)
        values = [normalize_keys(np.zeros(1, dtype=each.dtype), null) for each, null in emitted]
        names = [aggregation.name for aggregation in self.aggregations]
        named = to_columns(names, list(zip(values, nulls, strict=True)))
        return Batch(named, 1, ts=ts, arrived=float(np.max(batch.arrived, initial=0.0)))

    def _changes(self, rows: Batch) -> Batch:
        ts, signs = rows.each("ts"), rows.each("sign")
        if self.is_append_only and signs.min() < 0:
            raise ValueError(f"a row is retracted at ts {ts[signs < 0][0]} from an input that is declared append-only")
        slots = self._slots.of(nullable_columns(rows, self.keys)) if self.keys else np.zeros(len(rows), dtype=np.int64)
        cells = GroupInstants(slots, ts)
        counts = self._presence.change(cells, signs)
        existed, exists = counts.before > 0, counts.after > 0
        if not self.keys:
            existed, exists = ~cells.opens | self._has_total, np.ones(len(cells), dtype=bool)
            self._has_total = True
        block = AggregationBlock(rows, cells, signs, {}, [])
        updates = [emitted.update(block) for emitted in self._emitted]
        for overflow in block.overflows:
            self._report_overflow(overflow)
        changed = existed != exists
        for _, _, differs in updates:
            changed |= differs
        if self.emit_unchanged:
            changed[:] = True
        out = self._emit(cells, updates, existed & changed, exists & changed, cells.latest(rows.each("arrived")))
        if self.keys:
            self._slots.release(counts.gone)
        return out

    def _emit(
        self,
        cells: GroupInstants,
        updates: list[tuple[ValuesAndNulls, ValuesAndNulls, NDArray[np.bool_]]],
        retract: NDArray[np.bool_],
        insert: NDArray[np.bool_],
        arrived: Column,
    ) -> Batch:
        """Return the old rows of the cells to retract and the new rows of the cells to insert, in timestamp order."""
        olds, news = (cells.in_time[chosen[cells.in_time]] for chosen in (retract, insert))
        both = np.concatenate([olds, news])
        order = np.argsort(cells.ts[both], kind="stable")
        both = both[order]
        columns = self._slots.keys(cells.slot[both]) if self.keys else []
        for old, new, _ in updates:
            values, nulls = (np.concatenate([o[olds], n[news]])[order] for o, n in zip(old, new, strict=True))
            columns.append((values, nulls))
        names = [*self.keys, *(aggregation.name for aggregation in self.aggregations)]
        sign = np.where(order < len(olds), -1, 1)
        return Batch(to_columns(names, columns), len(both), ts=cells.ts[both], arrived=arrived[both], sign=sign)

    def _report_overflow(self, overflow: SumOverflow) -> None:
        """Add a dead letter for a sum that overflows int64, which is null until it fits again; or end the run."""
        group = Batch.of(to_columns(self.keys, self._slots.keys(np.array([overflow.slot]))) if self.keys else {})
        whose = f" of group {group.records()[0]}" if self.keys else ""
        reason = f"the sum of {overflow.column!r}{whose} is {overflow.total}: it does not fit int64"
        if self.on_error == "fail":
            raise RowError(reason)
        self.dead_letters.append(DeadLetter("error", replace(group, rows=1, ts=overflow.ts), reason))


def _make_accumulator(
    aggregation: Aggregation, schema: Schema, members: dict[str, DistinctValues], is_append_only: bool
) -> tuple[Accumulator, np.dtype[np.generic]]:
    """Return the accumulator for an aggregation, and the type of its values."""
    function, column = aggregation.function, aggregation.column
    if function not in FUNCTIONS:
        raise PlanError(f"no aggregation {function!r}{existing(function, FUNCTIONS)}", aggregation.name)
    if function == "count":
        return CountAccumulator(column), DTYPES["int64"]
    if column is None:
        raise PlanError(f"{function!r} needs a column{existing('', schema)}", aggregation.name)
    kind = DTYPES[schema[column]]
    if function == "count distinct":
        return DistinctCount(members[column]), DTYPES["int64"]
    if function in ("min", "max"):
        least = function == "min"
        return (
            AppendOnlyExtreme(column, kind, least)
            if is_append_only
            else RetractableExtreme(members[column], kind, least)
        ), kind
    if kind == DTYPES["string"]:
        raise PlanError(f"{function!r} of {column!r}, a string: it needs a column of numbers", aggregation.name)
    mean = function == "avg"
    if kind == DTYPES["float64"]:
        return FloatSum(column, mean), kind
    return IntegerSum(column, mean), DTYPES["float64" if mean else "int64"]
