"""Running counts, sums and averages of groups, from which values can be taken back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsms.batch import Column
from dsms.operators.aggregation.block import Beyond, Block
from dsms.operators.aggregation.cells import Cells, Kept
from dsms.slots import Nullable, Numbers

LONG = 64  # cells: a longer run is added up by itself, shorter ones side by side


class Count:
    """How many rows, or how many that are not null."""

    def __init__(self, column: str | None) -> None:
        self._column = column
        self._kept = Kept()

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""
        count = self._kept.running(block.cells, block.cells.sums(block.counting(self._column)))
        self._kept.keep(block.cells, count)
        return count, None


class IntegerSum:
    """The exact sum of integers, or their average, which may add up to more than int64 can hold."""

    def __init__(self, column: str, mean: bool) -> None:
        self._column, self._mean = column, mean
        self._count, self._kept = Count(column), Kept()
        self._turns = Kept()  # how often the sum has wrapped around

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""
        cells = block.cells
        count, _ = self._count.after(block)
        values, signs = block.rows.columns[self._column].astype(np.int64, copy=False), block.counting(self._column)
        total = self._kept.running(cells, cells.sums(values * signs))
        turns = self._wrapped(cells, values, signs, total)
        self._kept.keep(cells, total)
        self._turns.keep(cells, turns)
        if self._mean:
            return (total + turns * 2.0**64) / np.maximum(count, 1), count == 0
        if (wrong := turns != 0).any():
            block.beyond.extend(self._beyond(cells, total, turns, np.flatnonzero(wrong)))
        return total, (count == 0) | wrong

    def _beyond(self, cells: Cells, total: Numbers, turns: Numbers, wrong: Numbers) -> list[Beyond]:
        """Of each group with such a sum, the first of them."""
        _, places = np.unique(cells.slot[wrong], return_index=True)
        firsts = wrong[places]
        wholes = [int(total[cell]) + int(turns[cell]) * 2**64 for cell in firsts]
        slots, instants = cells.slot[firsts].tolist(), cells.ts[firsts].tolist()
        return [Beyond(self._column, *each) for each in zip(slots, instants, wholes, strict=True)]

    def _wrapped(self, cells: Cells, values: Numbers, signs: Numbers, total: Numbers) -> Numbers:
        """How often each sum has wrapped around: by how much it is off from what floats make of it."""
        slots = cells.slot[cells.heads]
        kept = self._kept.at(slots) + self._turns.at(slots) * 2.0**64
        most = max(float(values.max()), -float(values.min())) * len(values)
        if most + np.abs(kept).max() < 2.0**62:  # nearly always
            return np.zeros(len(cells), dtype=np.int64)
        changes = cells.sums(values.astype(np.float64) * signs)
        near = np.cumsum(changes)
        near = near - (near[cells.heads] - changes[cells.heads] - kept)[cells.group]
        turns: Numbers = np.rint((near - total) / 2.0**64).astype(np.int64)
        return turns


class FloatSum:
    """The sum or average of floats: longer ones inside, in the order of time, and what is not finite apart.

    A value that leaves is subtracted, so what rounding made of the sum stays until the group has no value left.
    """

    def __init__(self, column: str, mean: bool) -> None:
        self._column, self._mean = column, mean
        self._count, self._kept = Count(column), Kept(np.longdouble)
        self._strange = {value: Kept() for value in (np.inf, -np.inf, np.nan)}
        self._met = False  # whether any value was not finite yet

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""
        cells = block.cells
        count, _ = self._count.after(block)
        signs = block.counting(self._column)
        values = block.rows.columns[self._column]
        finite = np.isfinite(values) | (signs == 0)
        self._met = self._met or not finite.all()
        changes = cells.sums(np.where(finite & (signs != 0), values, 0.0).astype(np.longdouble) * signs)
        total = self._finite(cells, changes, count)
        with np.errstate(over="ignore"):  # beyond float64 is infinite
            result = (total / np.maximum(count, 1) if self._mean else total).astype(np.float64)
        if self._met:
            self._spoil(block, values, signs, result)
        return result, count == 0

    def _finite(self, cells: Cells, changes: Column, count: Numbers) -> Column:
        """The sum of what is finite after each cell; it starts anew wherever nothing is left."""
        empty = count == 0
        begins = cells.opens.copy()
        begins[1:] |= empty[:-1]
        starts = np.flatnonzero(begins)
        kept = np.zeros(len(cells), dtype=np.longdouble)
        kept[cells.heads] = self._kept.at(cells.slot[cells.heads])
        total = accumulated(changes, starts, kept[starts])
        total[empty] = 0
        self._kept.keep(cells, total)
        return total

    def _spoil(self, block: Block, values: Column, signs: Numbers, result: Column) -> None:
        """Puts in what the values that are not finite make of the sum, as long as they are there."""
        there: list[NDArray[np.bool_]] = []
        for value, kept in self._strange.items():
            like = np.isnan(values) if np.isnan(value) else values == value
            count = kept.running(block.cells, block.cells.sums(np.where(like, signs, 0)))
            kept.keep(block.cells, count)
            there.append(count > 0)
        up, down, nan = there
        result[up] = np.inf
        result[down] = -np.inf
        result[nan | (up & down)] = np.nan


def accumulated(changes: Column, starts: Numbers, first: Column) -> Column:
    """Running sums of runs, each from its own first value, strictly one after the other.

    Unlike one running sum over all, a run's result does not depend on what stands before it: not on how rows were cut.
    """
    total = changes.copy()
    total[starts] += first
    lengths = np.diff(starts, append=len(changes))
    for run in np.flatnonzero(lengths > LONG):
        piece = total[starts[run] : starts[run] + lengths[run]]
        np.add.accumulate(piece, out=piece)
    short = np.flatnonzero((lengths > 1) & (lengths <= LONG))
    for step in range(1, int(lengths[short].max(initial=1))):
        short = short[lengths[short] > step]
        at = starts[short] + step
        total[at] += total[at - 1]
    return total
