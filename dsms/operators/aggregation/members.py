"""Tracks the distinct values of a column in each group, and counts them for COUNT(DISTINCT)."""

from __future__ import annotations

import numpy as np

from dsms.data.batch import NULLS_SUFFIX
from dsms.data.key_table import KeyTable, Nullable
from dsms.operators.aggregation.block import AggregationBlock, MembershipChanges
from dsms.operators.aggregation.cells import KeyedValues
from dsms.operators.aggregation.presence import KeyCounts


class DistinctValues:
    """The distinct values of one column in each group, with their number of duplicates."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._presence = KeyCounts()
        self.pairs = KeyTable()  # (group, value)

    def flips(self, block: AggregationBlock) -> MembershipChanges:
        """Return the values that enter and leave in this block; computed once for all accumulators."""
        if self._column not in block.flips:
            block.flips[self._column] = self._compute_flips(block)
        return block.flips[self._column]

    def _compute_flips(self, block: AggregationBlock) -> MembershipChanges:
        nulls = block.rows.columns.get(self._column + NULLS_SUFFIX)
        values, ts, signs = block.rows.columns[self._column], block.rows.each("ts"), block.signs
        cell = block.cells.of_row
        if nulls is not None:
            filled = np.flatnonzero(~nulls)
            values, ts, signs, cell = values[filled], ts[filled], signs[filled], cell[filled]
        pairs = self.pairs.of([(block.cells.slot[cell], None), (values, None)])
        counts = self._presence.apply_events(pairs, ts, signs)
        self.pairs.release(counts.gone)
        flips = counts.flips
        changed = np.flatnonzero(flips)
        return MembershipChanges(counts.cells.slot[changed], cell[counts.cells.first[changed]], flips[changed])


class DistinctCount:
    """The number of distinct values in each group."""

    def __init__(self, members: DistinctValues) -> None:
        self._members = members
        self._counts = KeyedValues()

    def after(self, block: AggregationBlock) -> Nullable:
        """Apply a block of changes, and return the group's value after each cell."""
        flips = self._members.flips(block)
        changes = np.bincount(flips.cell, flips.sign, len(block.cells)).astype(np.int64)
        count = self._counts.running(block.cells, changes)
        self._counts.keep(block.cells, count)
        return count, None
