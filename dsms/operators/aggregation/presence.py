"""Counts the rows of each key, and finds the instants at which a key appears or disappears."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsms.data.key_table import Numbers
from dsms.operators.aggregation.cells import GroupInstants, KeyedValues


class CountChanges(NamedTuple):
    """The row counts of keys before and after each cell, sorted by slot, then by time."""

    cells: GroupInstants
    before: Numbers  # rows of the key before the cell
    after: Numbers

    @property
    def flips(self) -> Numbers:
        """+1 where a key appears, -1 where it disappears, 0 elsewhere."""
        return (self.after > 0).astype(np.int64) - (self.before > 0)

    @property
    def gone(self) -> Numbers:
        """The slots whose keys have no rows at the end."""
        tails = self.cells.tails
        slots: Numbers = self.cells.slot[tails[self.after[tails] == 0]]
        return slots


class KeyCounts:
    """Running row counts by slot; the signed rows of one slot at one instant are one net change."""

    def __init__(self) -> None:
        self._counts = KeyedValues()

    def apply_events(self, slots: Numbers, ts: Numbers, signs: Numbers) -> CountChanges:
        """Apply signed rows that are in timestamp order."""
        return self.change(GroupInstants(slots, ts), signs)

    def change(self, cells: GroupInstants, signs: Numbers) -> CountChanges:
        """Apply signed rows that are already grouped into cells."""
        changes = cells.sums(signs)
        after = self._counts.running(cells, changes)
        self._counts.keep(cells, after)
        return CountChanges(cells, after - changes, after)
