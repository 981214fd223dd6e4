"""Running counts, sums and averages of groups; values can be retracted from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsms.data.batch import Column
from dsms.data.key_table import Nullable, Numbers
from dsms.operators.aggregation.block import AggregationBlock, SumOverflow
from dsms.operators.aggregation.cells import GroupInstants, KeyedValues

LONG_RUN_CELLS = 64  # a longer run is summed by itself, shorter ones side by side


class CountAccumulator:
    """Counts the rows of each group, or the rows whose column is not null."""

    def __init__(self, column: str | None) -> None:
        self._column = column
        self._counts = KeyedValues()

    def after(self, block: AggregationBlock) -> Nullable:
        """Apply a block of changes, and return the group's value after each cell."""
        count = self._counts.running(block.cells, block.cells.sums(block.non_null_signs(self._column)))
        self._counts.keep(block.cells, count)
        return count, None


class IntegerSum:
    """The exact sum of integers, or their average; it detects sums that overflow int64."""

    def __init__(self, column: str, mean: bool) -> None:
        self._column, self._mean = column, mean
        self._count, self._totals = CountAccumulator(column), KeyedValues()
        self._wraps = KeyedValues()  # how often the sum has wrapped around

    def after(self, block: AggregationBlock) -> Nullable:
        """Apply a block of changes, and return the group's value after each cell."""
        cells = block.cells
        count, _ = self._count.after(block)
        values, signs = (
            block.rows.columns[self._column].astype(np.int64, copy=False),
            block.non_null_signs(self._column),
        )
        total = self._totals.running(cells, cells.sums(values * signs))
        wraps = self._count_wraps(cells, values, signs, total)
        self._totals.keep(cells, total)
        self._wraps.keep(cells, wraps)
        if self._mean:
            return (total + wraps * 2.0**64) / np.maximum(count, 1), count == 0
        if (overflown := wraps != 0).any():
            block.overflows.extend(self._list_overflows(cells, total, wraps, np.flatnonzero(overflown)))
        return total, (count == 0) | overflown

    def _list_overflows(
        self, cells: GroupInstants, total: Numbers, wraps: Numbers, overflown: Numbers
    ) -> list[SumOverflow]:
        """Return the first overflow of each group that has one."""
        _, places = np.unique(cells.slot[overflown], return_index=True)
        firsts = overflown[places]
        exact = [int(total[cell]) + int(wraps[cell]) * 2**64 for cell in firsts]
        slots, instants = cells.slot[firsts].tolist(), cells.ts[firsts].tolist()
        return [SumOverflow(self._column, *each) for each in zip(slots, instants, exact, strict=True)]

    def _count_wraps(self, cells: GroupInstants, values: Numbers, signs: Numbers, total: Numbers) -> Numbers:
        """Return how often each sum has wrapped around, from its difference to the sum in floats."""
        slots = cells.slot[cells.heads]
        stored = self._totals.at(slots) + self._wraps.at(slots) * 2.0**64
        most = max(float(values.max()), -float(values.min())) * len(values)
        if most + np.abs(stored).max() < 2.0**62:  # nearly always
            return np.zeros(len(cells), dtype=np.int64)
        changes = cells.sums(values.astype(np.float64) * signs)
        approximate = np.cumsum(changes)
        approximate = approximate - (approximate[cells.heads] - changes[cells.heads] - stored)[cells.group]
        wraps: Numbers = np.rint((approximate - total) / 2.0**64).astype(np.int64)
        return wraps


class FloatSum:
    """The sum or average of floats, added in timestamp order in extended precision; it counts inf and nan separately.

    A retracted value is subtracted, so rounding errors stay in the sum until the group has no value left.
    """

    def __init__(self, column: str, mean: bool) -> None:
        self._column, self._mean = column, mean
        self._count, self._totals = CountAccumulator(column), KeyedValues(np.longdouble)
        self._non_finite = {value: KeyedValues() for value in (np.inf, -np.inf, np.nan)}
        self._has_non_finite = False  # whether a value that is not finite has ever occurred

    def after(self, block: AggregationBlock) -> Nullable:
        """Apply a block of changes, and return the group's value after each cell."""
        cells = block.cells
        count, _ = self._count.after(block)
        signs = block.non_null_signs(self._column)
        values = block.rows.columns[self._column]
        finite = np.isfinite(values) | (signs == 0)
        self._has_non_finite = self._has_non_finite or not finite.all()
        changes = cells.sums(np.where(finite & (signs != 0), values, 0.0).astype(np.longdouble) * signs)
        total = self._sum_finite(cells, changes, count)
        with np.errstate(over="ignore"):  # beyond float64 is infinite
            result = (total / np.maximum(count, 1) if self._mean else total).astype(np.float64)
        if self._has_non_finite:
            self._apply_non_finite(block, values, signs, result)
        return result, count == 0

    def _sum_finite(self, cells: GroupInstants, changes: Column, count: Numbers) -> Column:
        """Return the sum of the finite values after each cell; it restarts at 0 where a group becomes empty."""
        empty = count == 0
        begins = cells.opens.copy()
        begins[1:] |= empty[:-1]
        starts = np.flatnonzero(begins)
        stored = np.zeros(len(cells), dtype=np.longdouble)
        stored[cells.heads] = self._totals.at(cells.slot[cells.heads])
        total = accumulate_segments(changes, starts, stored[starts])
        total[empty] = 0
        self._totals.keep(cells, total)
        return total

    def _apply_non_finite(self, block: AggregationBlock, values: Column, signs: Numbers, result: Column) -> None:
        """Overwrite the result where a group has values that are not finite."""
        occurs: list[NDArray[np.bool_]] = []
        for value, counts in self._non_finite.items():
            like = np.isnan(values) if np.isnan(value) else values == value
            count = counts.running(block.cells, block.cells.sums(np.where(like, signs, 0)))
            counts.keep(block.cells, count)
            occurs.append(count > 0)
        up, down, nan = occurs
        result[up] = np.inf
        result[down] = -np.inf
        result[nan | (up & down)] = np.nan


def accumulate_segments(changes: Column, starts: Numbers, first: Column) -> Column:
    """Return the running sum of each segment from its own first value, added strictly one after the other.

    Unlike one running sum over all, a segment's result does not depend on the segments before it, so it does not
    depend on how rows are cut into batches.
    """
    total = changes.copy()
    total[starts] += first
    lengths = np.diff(starts, append=len(changes))
    for run in np.flatnonzero(lengths > LONG_RUN_CELLS):
        piece = total[starts[run] : starts[run] + lengths[run]]
        np.add.accumulate(piece, out=piece)
    short = np.flatnonzero((lengths > 1) & (lengths <= LONG_RUN_CELLS))
    for step in range(1, int(lengths[short].max(initial=1))):
        short = short[lengths[short] > step]
        at = starts[short] + step
        total[at] += total[at - 1]
    return total
