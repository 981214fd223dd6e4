"""Groups signed rows into cells: all rows of one key (its slot in the key table) at one instant are one cell."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dsms.data.batch import Column
from dsms.data.key_table import Numbers, grow_to


def stable_order(numbers: Numbers) -> Numbers:
    """Return a stable sort order of non-negative numbers."""
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")  # numpy's radix sort, its fastest by far
    highest = int(numbers.max(initial=0)) >> 16
    if highest >= 1 << 16:
        return np.argsort(numbers, kind="stable")
    if highest:
        order = order[np.argsort((numbers >> 16)[order].astype(np.uint16), kind="stable")]
    return order


class GroupInstants:
    """Rows in timestamp order, sorted by slot into cells; a group is all cells of one slot."""

    def __init__(self, slots: Numbers, ts: Numbers) -> None:
        self.order = stable_order(slots)
        slot, ts = slots[self.order], ts[self.order]
        begins = np.ones(len(slot), dtype=bool)
        begins[1:] = (slot[1:] != slot[:-1]) | (ts[1:] != ts[:-1])
        self.starts = np.flatnonzero(begins)  # in `order`: the first row of each cell
        self.first = self.order[self.starts]  # the position of that row in the input
        self.slot = slot[self.starts]
        self.ts = ts[self.starts]
        opens = np.ones(len(self.slot), dtype=bool)
        opens[1:] = self.slot[1:] != self.slot[:-1]
        self.opens = opens
        self.heads = np.flatnonzero(opens)  # the first cell of each group
        self.tails = np.append(self.heads, len(self.slot))[1:] - 1  # and the last
        self.highest = int(self.slot[-1]) + 1 if len(self.slot) else 0

    def __len__(self) -> int:
        return len(self.slot)

    @cached_property
    def group(self) -> Numbers:
        """The group of each cell."""
        return np.cumsum(self.opens) - 1

    @cached_property
    def of_row(self) -> Numbers:
        """The cell of each input row."""
        cells = np.empty(len(self.order), dtype=np.int64)
        cells[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts, append=len(self.order)))
        return cells

    @cached_property
    def in_time(self) -> Numbers:
        """The cells in the order of their first rows, which is timestamp order."""
        cells = np.full(len(self.order), -1)
        cells[self.first] = np.arange(len(self))
        return cells[cells >= 0]

    def sums(self, values: Column) -> Column:
        """Return the sum of the rows of each cell."""
        return np.add.reduceat(values[self.order], self.starts) if len(self) else values[:0]

    def latest(self, values: Column) -> Column:
        """Return the highest value among the rows of each cell."""
        return np.maximum.reduceat(values[self.order], self.starts) if len(self) else values[:0]


class KeyedValues:
    """One value for each slot: the value after the last cell of its group."""

    def __init__(self, dtype: np.dtype[np.generic] | type = np.int64) -> None:
        self.values: Column = np.zeros(0, dtype=dtype)

    def at(self, slots: Numbers) -> Column:
        """Return the values of these slots."""
        self.values = grow_to(self.values, int(slots.max(initial=-1)) + 1)
        return self.values[slots]

    def keep(self, cells: GroupInstants, after: Column) -> None:
        """Store each group's last value for its slot."""
        self.values = grow_to(self.values, cells.highest)
        self.values[cells.slot[cells.tails]] = after[cells.tails]

    def before(self, cells: GroupInstants, after: Column) -> Column:
        """Return the value before each cell: that after the previous cell of the group, or the stored one."""
        before = np.empty_like(after)
        before[1:] = after[:-1]
        before[cells.heads] = self.at(cells.slot[cells.heads])
        return before

    def running(self, cells: GroupInstants, changes: Numbers) -> Numbers:
        """Return the stored value plus all changes, after each cell; integers, modulo 2**64."""
        total = np.cumsum(changes)
        base = total[cells.heads] - changes[cells.heads] - self.at(cells.slot[cells.heads])
        return total - base[cells.group]
