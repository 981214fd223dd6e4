"""Which values each group has: how many different ones, and the least or greatest of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsms.batch import NULLS, Column
from dsms.operators.cells import Cells, Kept
from dsms.operators.presence import Presence
from dsms.operators.sums import Block
from dsms.slots import Nullable, Numbers, Slots

NONE = np.iinfo(np.int64).max  # the rank of no value at all


class Flips(NamedTuple):
    """Values that come to a group or leave it, by value, then in the order of time."""

    pair: Numbers  # the number of this value in this group
    cell: Numbers  # of the groups' cells
    sign: Numbers  # +1 comes, -1 leaves


class Members:
    """The values of one column, each once a group, however often it is there."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._presence = Presence()
        self._block: Block | None = None
        self._flips = Flips(*(np.zeros(0, dtype=np.int64),) * 3)
        self.pairs = Slots()  # of group and value

    def flips(self, block: Block) -> Flips:
        """What comes and leaves in this block; found once, whoever asks."""
        if block is not self._block:
            self._block, self._flips = block, self._follow(block)
        return self._flips

    def _follow(self, block: Block) -> Flips:
        nulls = block.rows.columns.get(self._column + NULLS)
        values, ts, signs = block.rows.columns[self._column], block.rows.each("ts"), block.signs
        cell = block.cells.of_row
        if nulls is not None:
            some = np.flatnonzero(~nulls)
            values, ts, signs, cell = values[some], ts[some], signs[some], cell[some]
        pairs = self.pairs.of([(block.cells.slot[cell], None), (values, None)])
        course = self._presence.follow(pairs, ts, signs)
        self.pairs.release(course.gone)
        flips = course.flips
        turned = np.flatnonzero(flips)
        return Flips(course.cells.slot[turned], cell[course.cells.first[turned]], flips[turned])


class DistinctCount:
    """How many different values."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._kept = Kept()

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""
        flips = self._members.flips(block)
        changes = np.bincount(flips.cell, flips.sign, len(block.cells)).astype(np.int64)
        count = self._kept.running(block.cells, changes)
        self._kept.keep(block.cells, count)
        return count, None


class Extreme:
    """The least or the greatest value; nan is greater than all others."""

    def __init__(self, members: Members, dtype: np.dtype[np.generic], least: bool) -> None:
        self._members, self._dtype, self._least = members, dtype, least
        self._best = Kept()  # one more than the pair that is the extreme of each group now; 0: it has no value

    def after(self, block: Block) -> Nullable:
        """The group's value after each cell."""
        cells = block.cells
        pair, start, end = self._spans(cells, self._members.flips(block))
        changes = np.bincount(start, minlength=len(cells) + 1) - np.bincount(end, minlength=len(cells) + 1)
        none = np.cumsum(changes)[:-1] == 0
        if none.all():
            self._best.keep(cells, np.zeros(len(cells), dtype=np.int64))
            return np.zeros(len(cells), dtype=self._dtype), none
        values, _ = self._members.pairs.keys(pair)[1]
        scale = Scale(values)
        flip = 0 if self._least else -1  # all bits turned: the order turned
        lowest = stabbed(start, end, scale.marks ^ flip, len(cells)) ^ flip
        result = scale.values(np.where(none, scale.marks[0], lowest))
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
