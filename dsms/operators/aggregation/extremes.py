"""Minimum and maximum of each group, for inputs with retractions and for append-only inputs."""

from __future__ import annotations

import numpy as np

from dsms.data.batch import Column
from dsms.data.key_table import Nullable, Numbers, normalize_keys, nullable_columns
from dsms.operators.aggregation.block import AggregationBlock, MembershipChanges
from dsms.operators.aggregation.cells import GroupInstants, KeyedValues, stable_order
from dsms.operators.aggregation.members import DistinctValues

NO_RANK = np.iinfo(np.int64).max  # where no value exists


class RetractableExtreme:
    """The minimum or maximum of groups whose values may be retracted; nan is greater than all others."""

    def __init__(self, members: DistinctValues, dtype: np.dtype[np.generic], least: bool) -> None:
        self._members, self._dtype, self._least = members, dtype, least
        self._best = KeyedValues()  # of each group, 1 + the slot of the pair that is its extreme; 0: it has no value

    def after(self, block: AggregationBlock) -> Nullable:
        """Apply a block of changes, and return the group's value after each cell."""
        cells = block.cells
        pair, start, end = self._spans(cells, self._members.flips(block))
        values, _ = self._members.pairs.keys(pair)[1] if len(pair) else (np.zeros(0, dtype=self._dtype), None)
        result, none = extreme_over_spans(cells, values, start, end, self._least)
        self._remember(cells, result, none)
        return result, none

    def _remember(self, cells: GroupInstants, result: Column, none: Column) -> None:
        """Store which pair is each group's extreme after the block."""
        last = cells.tails[~none[cells.tails]]
        best = np.zeros(len(cells), dtype=np.int64)
        best[last] = self._members.pairs.of([(cells.slot[last], None), (result[last], None)]) + 1
        self._best.keep(cells, best)

    def _spans(self, cells: GroupInstants, flips: MembershipChanges) -> tuple[Numbers, Numbers, Numbers]:
        """Return pairs with the first and the end cell of each span in which they exist, as far as they can matter."""
        group = cells.group[flips.cell]
        first = np.ones(len(flips.pair), dtype=bool)  # the first flip of its pair
        first[1:] = flips.pair[1:] != flips.pair[:-1]
        last = np.append(first[1:], True)[: len(first)]
        enters = flips.sign > 0
        ends = np.where(last, cells.tails[group] + 1, np.append(flips.cell[1:], 0)[: len(first)])
        old = ~enters & first  # it existed before the block
        begins = cells.heads[group[old]]
        unchanged, groups = self._unchanged_pairs(cells, flips, group)
        pair = np.concatenate([flips.pair[enters], flips.pair[old], unchanged])
        start = np.concatenate([flips.cell[enters], begins, cells.heads[groups]])
        end = np.concatenate([ends[enters], flips.cell[old], cells.tails[groups] + 1])
        filled = end > start
        return pair[filled], start[filled], end[filled]

    def _unchanged_pairs(
        self, cells: GroupInstants, flips: MembershipChanges, group: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Return pairs that exist throughout the block, and their groups: the extreme so far, or all if it leaves."""
        best = self._best.at(cells.slot[cells.heads]) - 1
        loses = np.zeros(len(best), dtype=bool)
        loses[group[best[group] == flips.pair]] = True
        holds = np.flatnonzero((best >= 0) & ~loses)
        if not loses.any():
            return best[holds], holds
        pairs = self._members.pairs.live()
        moved = np.zeros(self._members.pairs.high, dtype=bool)
        moved[flips.pair] = True
        pairs = pairs[~moved[pairs]]
        owner: Column = self._members.pairs.keys(pairs)[0][0]
        group_of_slot = np.full(cells.highest, -1)  # of the slots that lose their extreme
        group_of_slot[cells.slot[cells.heads[loses]]] = np.flatnonzero(loses)
        in_range = owner < len(group_of_slot)
        groups = np.where(in_range, group_of_slot[np.minimum(owner, len(group_of_slot) - 1)], -1)
        chosen = np.flatnonzero(groups >= 0)
        return np.concatenate([best[holds], pairs[chosen]]), np.concatenate([holds, groups[chosen]])


class AppendOnlyExtreme:
    """The minimum or maximum of groups that never lose a value; it stores no other value."""

    def __init__(self, column: str, dtype: np.dtype[np.generic], least: bool) -> None:
        self._column, self._least = column, least
        self._best, self._is_filled = KeyedValues(dtype), KeyedValues(np.bool_)

    def after(self, block: AggregationBlock) -> Nullable:
        """Apply a block of changes, and return the group's value after each cell."""
        cells, cell = block.cells, block.cells.of_row
        values, nulls = nullable_columns(block.rows, [self._column])[0]
        values = normalize_keys(values, None)
        if nulls is not None:
            values, cell = values[~nulls], cell[~nulls]
        slots = cells.slot[cells.heads]
        known = np.flatnonzero(self._is_filled.at(slots))
        values = np.concatenate([values, self._best.at(slots[known])])
        start = np.concatenate([cell, cells.heads[known]])
        result, none = extreme_over_spans(cells, values, start, cells.tails[cells.group[start]] + 1, self._least)
        self._best.keep(cells, result)
        self._is_filled.keep(cells, ~none)
        return result, none


def extreme_over_spans(
    cells: GroupInstants, values: Column, start: Numbers, end: Numbers, least: bool
) -> tuple[Column, Column]:
    """Return the extreme of the values whose spans cover each cell, and where no span does; no span is empty."""
    changes = np.bincount(start, minlength=len(cells) + 1) - np.bincount(end, minlength=len(cells) + 1)
    none = np.cumsum(changes)[:-1] == 0
    if none.all():
        return np.zeros(len(cells), dtype=values.dtype), none
    if values.dtype.kind == "O":  # slow to sort
        values, start, end = drop_dominated_spans(cells, values, start, end, least)
    scale = OrderedCodes(values)
    flip = 0 if least else -1  # flipping all bits reverses the order
    lowest = lowest_rank_at(start, end, scale.codes ^ flip, len(cells)) ^ flip
    return scale.values(np.where(none, scale.codes[0], lowest)), none


def drop_dominated_spans(
    cells: GroupInstants, values: Column, start: Numbers, end: Numbers, least: bool
) -> tuple[Column, Numbers, Numbers]:
    """Keep only the best of the spans over a whole group, and of the other spans only the better ones."""
    group = cells.group[start]
    whole = (start == cells.heads[group]) & (end == cells.tails[group] + 1)
    through, others = np.flatnonzero(whole), np.flatnonzero(~whole)
    through = through[stable_order(group[through])]
    of = group[through]
    firsts = np.flatnonzero(np.append(True, of[1:] != of[:-1])[: len(of)])
    if not len(firsts):
        return values, start, end
    best = (np.minimum if least else np.maximum).reduceat(values[through], firsts)
    best_of_group = np.full(len(cells.heads), -1)
    best_of_group[of[firsts]] = np.arange(len(firsts))
    rival = best_of_group[group[others]]
    better = (values[others] < best[rival]) if least else (values[others] > best[rival])
    others = others[better.astype(bool) | (rival < 0)]
    through = through[firsts]
    return (
        np.concatenate([best, values[others]]),
        np.concatenate([start[through], start[others]]),
        np.concatenate([end[through], end[others]]),
    )


class OrderedCodes:
    """Maps values to integers of the same order, and back."""

    def __init__(self, values: Column) -> None:
        self._dtype = values.dtype
        if values.dtype.kind == "O":
            order = np.argsort(values, kind="stable")
            self._sorted = values[order]
            self.codes = np.empty(len(order), dtype=np.int64)
            self.codes[order] = np.arange(len(order))
        elif values.dtype.kind == "f":
            self.codes = _flip_float_bits(values.view(np.int64))
        else:
            self.codes = values.astype(np.int64)

    def values(self, codes: Numbers) -> Column:
        """Return the values of these codes."""
        if self._dtype.kind == "O":
            return self._sorted[codes]
        return _flip_float_bits(codes).view(np.float64) if self._dtype.kind == "f" else codes.astype(self._dtype)


def _flip_float_bits(bits: Numbers) -> Numbers:
    """Convert the bits of floats to integers of the same order, and back: flip all but the sign below zero."""
    return bits ^ ((bits >> 63) & NO_RANK)


def lowest_rank_at(start: Numbers, end: Numbers, rank: Numbers, length: int) -> Numbers:
    """Return the lowest rank of the spans over each position, or `NO_RANK`; no span is empty.

    Two blocks of a power of two cover a span; from the largest blocks down, each passes its rank to its two halves.
    """
    level = np.frexp((end - start).astype(np.float64))[1].astype(np.int64) - 1
    lowest = np.full(length, NO_RANK)
    for power in range(int(level.max(initial=0)), -1, -1):
        here = np.flatnonzero(level == power)
        np.minimum.at(lowest, start[here], rank[here])
        np.minimum.at(lowest, end[here] - (1 << power), rank[here])
        if power:
            half = 1 << (power - 1)
            halved = lowest.copy()
            np.minimum(halved[half:], lowest[:-half], out=halved[half:])
            lowest = halved
    return lowest
