"""The least or the greatest value of each group, with values that leave and without."""

from __future__ import annotations

import numpy as np

from dsms.batch import Column
from dsms.operators.aggregation.block import Block, Flips
from dsms.operators.aggregation.cells import Cells, Kept, order_of
from dsms.operators.aggregation.members import Members
from dsms.slots import Nullable, Numbers, nullable, plain

NONE = np.iinfo(np.int64).max  # the rank of no value at all


class Extreme:
    """The least or the greatest value; nan is greater than all others."""

    def __init__(self, members: Members, dtype: np.dtype[np.generic], least: bool) -> None:
        self._members, self._dtype, self._least = members, dtype, least
        self._best = Kept()  # one more than the pair that is the extreme of each group now; 0: it has no value

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""
        cells = block.cells
        pair, start, end = self._spans(cells, self._members.flips(block))
        values, _ = self._members.pairs.keys(pair)[1] if len(pair) else (np.zeros(0, dtype=self._dtype), None)
        result, none = over(cells, values, start, end, self._least)
        self._remember(cells, result, none)
        return result, none

    def _remember(self, cells: Cells, result: Column, none: Column) -> None:
        """Keeps which pair is the extreme of each group at the end."""
        last = cells.tails[~none[cells.tails]]
        best = np.zeros(len(cells), dtype=np.int64)
        best[last] = self._members.pairs.of([(cells.slot[last], None), (result[last], None)]) + 1
        self._best.keep(cells, best)

    def _spans(self, cells: Cells, flips: Flips) -> tuple[Numbers, Numbers, Numbers]:
        """From which cell to which (not included) which pair is there, as far as it can matter."""
        group = cells.group[flips.cell]
        fresh = np.ones(len(flips.pair), dtype=bool)  # the first flip of its pair
        fresh[1:] = flips.pair[1:] != flips.pair[:-1]
        last = np.append(fresh[1:], True)[: len(fresh)]
        comes = flips.sign > 0
        ends = np.where(last, cells.tails[group] + 1, np.append(flips.cell[1:], 0)[: len(fresh)])
        old = ~comes & fresh  # was there before the block
        begins = cells.heads[group[old]]
        stay, whose = self._staying(cells, flips, group)
        pair = np.concatenate([flips.pair[comes], flips.pair[old], stay])
        start = np.concatenate([flips.cell[comes], begins, cells.heads[whose]])
        end = np.concatenate([ends[comes], flips.cell[old], cells.tails[whose] + 1])
        some = end > start
        return pair[some], start[some], end[some]

    def _staying(self, cells: Cells, flips: Flips, group: Numbers) -> tuple[Numbers, Numbers]:
        """Pairs that are there all through, and their groups: the extreme so far, or all if that one leaves."""
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
        which = np.full(cells.highest, -1)  # slots that lose their extreme: the number of their group
        which[cells.slot[cells.heads[loses]]] = np.flatnonzero(loses)
        asked = np.where(owner < len(which), which[np.minimum(owner, len(which) - 1)], -1)
        of = np.flatnonzero(asked >= 0)
        return np.concatenate([best[holds], pairs[of]]), np.concatenate([holds, asked[of]])


class Record:
    """The least or the greatest value of groups from which nothing ever leaves: all other values are forgotten."""

    def __init__(self, column: str, dtype: np.dtype[np.generic], least: bool) -> None:
        self._column, self._least = column, least
        self._best, self._full = Kept(dtype), Kept(np.bool_)

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""
        cells, cell = block.cells, block.cells.of_row
        values, nulls = nullable(block.rows, [self._column])[0]
        values = plain(values, None)
        if nulls is not None:
            values, cell = values[~nulls], cell[~nulls]
        slots = cells.slot[cells.heads]
        known = np.flatnonzero(self._full.at(slots))
        values = np.concatenate([values, self._best.at(slots[known])])
        start = np.concatenate([cell, cells.heads[known]])
        result, none = over(cells, values, start, cells.tails[cells.group[start]] + 1, self._least)
        self._best.keep(cells, result)
        self._full.keep(cells, ~none)
        return result, none


def over(cells: Cells, values: Column, start: Numbers, end: Numbers, least: bool) -> tuple[Column, Column]:
    """At each cell the extreme of the values whose spans are over it, and where there is none; no span is empty."""
    changes = np.bincount(start, minlength=len(cells) + 1) - np.bincount(end, minlength=len(cells) + 1)
    none = np.cumsum(changes)[:-1] == 0
    if none.all():
        return np.zeros(len(cells), dtype=values.dtype), none
    if values.dtype.kind == "O":  # slow to sort
        values, start, end = narrowed(cells, values, start, end, least)
    scale = Scale(values)
    flip = 0 if least else -1  # all bits turned: the order turned
    lowest = stabbed(start, end, scale.marks ^ flip, len(cells)) ^ flip
    return scale.values(np.where(none, scale.marks[0], lowest)), none


def narrowed(
    cells: Cells, values: Column, start: Numbers, end: Numbers, least: bool
) -> tuple[Column, Numbers, Numbers]:
    """Of the spans over a whole group only the best one, of the others only those that are better."""
    group = cells.group[start]
    whole = (start == cells.heads[group]) & (end == cells.tails[group] + 1)
    through, others = np.flatnonzero(whole), np.flatnonzero(~whole)
    through = through[order_of(group[through])]
    of = group[through]
    firsts = np.flatnonzero(np.append(True, of[1:] != of[:-1])[: len(of)])
    if not len(firsts):
        return values, start, end
    best = (np.minimum if least else np.maximum).reduceat(values[through], firsts)
    bar = np.full(len(cells.heads), -1)
    bar[of[firsts]] = np.arange(len(firsts))
    rival = bar[group[others]]
    better = (values[others] < best[rival]) if least else (values[others] > best[rival])
    others = others[better.astype(bool) | (rival < 0)]
    through = through[firsts]
    return (
        np.concatenate([best, values[others]]),
        np.concatenate([start[through], start[others]]),
        np.concatenate([end[through], end[others]]),
    )


class Scale:
    """Integers that are in the order of some values, and the way back."""

    def __init__(self, values: Column) -> None:
        self._dtype = values.dtype
        if values.dtype.kind == "O":
            order = np.argsort(values, kind="stable")
            self._sorted = values[order]
            self.marks = np.empty(len(order), dtype=np.int64)
            self.marks[order] = np.arange(len(order))
        elif values.dtype.kind == "f":
            self.marks = _turned(values.view(np.int64))
        else:
            self.marks = values.astype(np.int64)

    def values(self, marks: Numbers) -> Column:
        """The values that these integers stand for."""
        if self._dtype.kind == "O":
            return self._sorted[marks]
        return _turned(marks).view(np.float64) if self._dtype.kind == "f" else marks.astype(self._dtype)


def _turned(bits: Numbers) -> Numbers:
    """Floats' bits in the order of the floats, and back: below zero all but the sign is turned."""
    return bits ^ ((bits >> 63) & NONE)


def stabbed(start: Numbers, end: Numbers, rank: Numbers, length: int) -> Numbers:
    """At each place, the lowest rank of the spans over it, none of them empty; NONE where there is none.

    Two blocks of a power of two cover a span; from the largest blocks down, each hands its rank to its two halves.
    """
    level = np.frexp((end - start).astype(np.float64))[1].astype(np.int64) - 1
    lowest = np.full(length, NONE)
    for power in range(int(level.max(initial=0)), -1, -1):
        here = np.flatnonzero(level == power)
        np.minimum.at(lowest, start[here], rank[here])
        np.minimum.at(lowest, end[here] - (1 << power), rank[here])
        if power:
            half = 1 << (power - 1)
            handed = lowest.copy()
            np.minimum(handed[half:], lowest[:-half], out=handed[half:])
            lowest = handed
    return lowest
