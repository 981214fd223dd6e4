"""Groups of rows and what they come to: counts, sums, averages, extremes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dsms.algebra import Aggregation
from dsms.batch import Batch, Column
from dsms.errors import PlanError, RowError, existing
from dsms.operators.aggregation.block import Beyond, Block
from dsms.operators.aggregation.cells import Cells, Kept
from dsms.operators.aggregation.extremes import Extreme, Record
from dsms.operators.aggregation.members import DistinctCount, Members
from dsms.operators.aggregation.presence import Presence
from dsms.operators.aggregation.sums import Count, FloatSum, IntegerSum
from dsms.operators.base import ROW_COST, Aside, Operator
from dsms.operators.pending import Pending
from dsms.schema import DTYPES, Schema
from dsms.settings import Settings
from dsms.slots import Nullable, Slots, columned, nullable, plain

FUNCTIONS = ("count", "sum", "avg", "min", "max", "count distinct")
Whole = tuple[Column, Column]  # values, and where they are null


class Accumulator(Protocol):
    """What one aggregation keeps of each group."""

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""


class Shown:
    """The value of one aggregation in each group's row as it was last put out."""

    def __init__(self, accumulator: Accumulator, dtype: np.dtype[np.generic]) -> None:
        self._accumulator = accumulator
        self.dtype = dtype
        self._values, self._full = Kept(dtype), Kept(np.bool_)  # a slot of which nothing is kept has a null

    def turn(self, block: Block) -> tuple[Whole, Whole, NDArray[np.bool_]]:
        """The values before and after each cell, and where they differ."""
        values, nulls = self._accumulator.after(block)
        never = nulls is None
        nulls = np.zeros(len(values), dtype=bool) if nulls is None else nulls
        values = plain(values, nulls)
        gone = nulls if never else ~self._full.before(block.cells, ~nulls)
        old = plain(self._values.before(block.cells, values), gone)
        differs = values != old
        if values.dtype.kind == "f":
            differs &= ~(np.isnan(values) & np.isnan(old))
        differs = np.where(nulls | gone, nulls != gone, differs).astype(bool)
        self._values.keep(block.cells, values)
        self._full.keep(block.cells, ~nulls)
        return (old, gone), (values, nulls), differs


@dataclass(eq=False)
class Aggregate(Operator):
    """Keeps one row a group: takes the old one back and puts the new one out at each instant that changes it.

    Without keys there is one row from the first instant with rows on; if there never is one, it is put out at the end.
    """

    cost: float = ROW_COST
    schema: Schema = field(default_factory=lambda: Schema(()))  # of the input
    keys: tuple[str, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    every: bool = False  # whether rows that an instant touched but did not change are put out too
    on_error: str = "fail"  # a sum that int64 cannot hold ends the run, or is null and told
    appends: bool = False  # whether no row is ever taken back: then extremes need not remember all values
    timed: ClassVar[bool] = True
    _pending: Pending = field(default_factory=Pending, init=False, repr=False)
    _slots: Slots = field(default_factory=Slots, init=False, repr=False)
    _presence: Presence = field(default_factory=Presence, init=False, repr=False)
    _shown: list[Shown] = field(default_factory=list, init=False, repr=False)
    _begun: bool = field(default=False, init=False, repr=False)  # whether there is the one row of no keys

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in self.keys:
            self.schema[key]  # refuses what is no column
        members = {a.column: Members(a.column) for a in self.aggregations if a.column is not None}
        for aggregation in self.aggregations:
            accumulator, dtype = _accumulator(aggregation, self.schema, members, self.appends)
            self._shown.append(Shown(accumulator, dtype))

    def fresh(self, settings: Settings) -> Aggregate:
        return replace(self)

    def process(self, batch: Batch, port: int = 0) -> Batch:
        complete = self._pending.add(batch, port)
        rows = complete.rows[0]
        out = Batch()
        if rows is not None:
            out = self._changes(rows)
        elif complete.ended and not self.keys and not self._begun:
            out = self._nothing(complete.upto - 1, batch)
        seq = int(np.min(batch.seq, initial=2**62))
        return replace(out, seq=seq, upto=complete.upto, ended=complete.ended)

    def _nothing(self, ts: int, batch: Batch) -> Batch:
        """The row without keys when there are no rows: counts are 0, all else is null."""
        self._begun = True
        counts = [aggregation.function.startswith("count") for aggregation in self.aggregations]
        nulls = [np.array([not count]) for count in counts]
        values = [plain(np.zeros(1, dtype=s.dtype), null) for s, null in zip(self._shown, nulls, strict=True)]
        names = [aggregation.name for aggregation in self.aggregations]
        named = columned(names, list(zip(values, nulls, strict=True)))
        return Batch(named, 1, ts=ts, arrived=float(np.max(batch.arrived, initial=0.0)))

    def _changes(self, rows: Batch) -> Batch:
        ts, signs = rows.each("ts"), rows.each("sign")
        if self.appends and signs.min() < 0:
            raise ValueError(f"a row is taken back at ts {ts[signs < 0][0]} from an input that was said only to append")
        slots = self._slots.of(nullable(rows, self.keys)) if self.keys else np.zeros(len(rows), dtype=np.int64)
        cells = Cells(slots, ts)
        course = self._presence.change(cells, signs)
        was, there = course.before > 0, course.after > 0
        if not self.keys:
            was, there = ~cells.opens | self._begun, np.ones(len(cells), dtype=bool)
            self._begun = True
        block = Block(rows, cells, signs, {}, [])
        turns = [shown.turn(block) for shown in self._shown]
        for beyond in block.beyond:
            self._overflown(beyond)
        changed = was != there
        for _, _, differs in turns:
            changed |= differs
        if self.every:
            changed[:] = True
        out = self._put_out(cells, turns, was & changed, there & changed, cells.latest(rows.each("arrived")))
        if self.keys:
            self._slots.release(course.gone)
        return out

    def _put_out(
        self,
        cells: Cells,
        turns: list[tuple[Whole, Whole, NDArray[np.bool_]]],
        back: NDArray[np.bool_],
        out: NDArray[np.bool_],
        arrived: Column,
    ) -> Batch:
        """Old rows of some cells taken back and new ones of some put out, in the order of time, then as they came."""
        olds, news = (cells.in_time[chosen[cells.in_time]] for chosen in (back, out))
        both = np.concatenate([olds, news])
        order = np.argsort(cells.ts[both], kind="stable")
        both = both[order]
        columns = self._slots.keys(cells.slot[both]) if self.keys else []
        for old, new, _ in turns:
            values, nulls = (np.concatenate([o[olds], n[news]])[order] for o, n in zip(old, new, strict=True))
            columns.append((values, nulls))
        names = [*self.keys, *(aggregation.name for aggregation in self.aggregations)]
        sign = np.where(order < len(olds), -1, 1)
        return Batch(columned(names, columns), len(both), ts=cells.ts[both], arrived=arrived[both], sign=sign)

    def _overflown(self, beyond: Beyond) -> None:
        """A sum that int64 cannot hold: it is null while that is so, and told; or it ends the run."""
        group = Batch.of(columned(self.keys, self._slots.keys(np.array([beyond.slot]))) if self.keys else {})
        whose = f" of group {group.records()[0]}" if self.keys else ""
        reason = f"the sum of {beyond.column!r}{whose} is {beyond.total}: beyond what int64 can hold"
        if self.on_error == "fail":
            raise RowError(reason)
        self.asides.append(Aside("error", replace(group, rows=1, ts=beyond.ts), reason))


def _accumulator(
    aggregation: Aggregation, schema: Schema, members: dict[str, Members], appends: bool
) -> tuple[Accumulator, np.dtype[np.generic]]:
    """What an aggregation needs to keep, and the type of its values."""
    function, column = aggregation.function, aggregation.column
    if function not in FUNCTIONS:
        raise PlanError(f"{function!r} is no aggregation{existing(function, FUNCTIONS)}", aggregation.name)
    if function == "count":
        return Count(column), DTYPES["int64"]
    if column is None:
        raise PlanError(f"{function!r} needs a column{existing('', schema)}", aggregation.name)
    kind = DTYPES[schema[column]]
    if function == "count distinct":
        return DistinctCount(members[column]), DTYPES["int64"]
    if function in ("min", "max"):
        least = function == "min"
        return (Record(column, kind, least) if appends else Extreme(members[column], kind, least)), kind
    if kind == DTYPES["string"]:
        raise PlanError(f"{function!r} of {column!r}, a string: numbers are wanted", aggregation.name)
    mean = function == "avg"
    if kind == DTYPES["float64"]:
        return FloatSum(column, mean), kind
    return IntegerSum(column, mean), DTYPES["float64" if mean else "int64"]
