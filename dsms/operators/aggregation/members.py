"""Which values each group has, and how many different ones."""

from __future__ import annotations

import numpy as np

from dsms.batch import NULLS
from dsms.operators.aggregation.block import Block, Flips
from dsms.operators.aggregation.cells import Kept
from dsms.operators.aggregation.presence import Presence
from dsms.slots import Nullable, Slots


class Members:
    """The values of one column, each once a group, however often it is there."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._presence = Presence()
        self.pairs = Slots()  # of group and value

    def flips(self, block: Block) -> Flips:
        """What comes and leaves in this block; found once, whoever asks."""
        if self._column not in block.flips:
            block.flips[self._column] = self._follow(block)
        return block.flips[self._column]

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
