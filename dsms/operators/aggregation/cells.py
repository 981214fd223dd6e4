"""Events by slot and instant: what happens to one slot at one instant is one change, a cell."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dsms.batch import Column
from dsms.slots import Numbers, reaching


def order_of(numbers: Numbers) -> Numbers:
    """A stable order of numbers that are not negative."""
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")  # by digits: numpy's fastest by far
    highest = int(numbers.max(initial=0)) >> 16
    if highest >= 1 << 16:
        return np.argsort(numbers, kind="stable")
    if highest:
        order = order[np.argsort((numbers >> 16)[order].astype(np.uint16), kind="stable")]
    return order


class Cells:
    """Rows in the order of their timestamps, sorted by slot; the cells of a slot, one an instant, are a group."""

    def __init__(self, slots: Numbers, ts: Numbers) -> None:
        self.order = order_of(slots)
        slot, ts = slots[self.order], ts[self.order]
        begins = np.ones(len(slot), dtype=bool)
        begins[1:] = (slot[1:] != slot[:-1]) | (ts[1:] != ts[:-1])
        self.starts = np.flatnonzero(begins)  # in `order`: the first row of each cell
        self.first = self.order[self.starts]  # its number among the rows as given
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
        """Of each cell, which group it is in."""
        return np.cumsum(self.opens) - 1

    @cached_property
    def of_row(self) -> Numbers:
        """Of each row, as given, which cell it is in."""
        cells = np.empty(len(self.order), dtype=np.int64)
        cells[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts, append=len(self.order)))
        return cells

    @cached_property
    def in_time(self) -> Numbers:
        """The cells in the order of their first rows, so in the order of time."""
        cells = np.full(len(self.order), -1)
        cells[self.first] = np.arange(len(self))
        return cells[cells >= 0]

    def sums(self, values: Column) -> Column:
        """What the rows of each cell add up to."""
        return np.add.reduceat(values[self.order], self.starts) if len(self) else values[:0]

    def latest(self, values: Column) -> Column:
        """The highest value among the rows of each cell."""
        return np.maximum.reduceat(values[self.order], self.starts) if len(self) else values[:0]


class Kept:
    """A value for each slot: how the last cell of its group left it."""

    def __init__(self, dtype: np.dtype[np.generic] | type = np.int64) -> None:
        self.values: Column = np.zeros(0, dtype=dtype)

    def at(self, slots: Numbers) -> Column:
        """What is kept for these slots."""
        self.values = reaching(self.values, int(slots.max(initial=-1)) + 1)
        return self.values[slots]

    def keep(self, cells: Cells, after: Column) -> None:
        """Each group's last value is kept for its slot."""
        self.values = reaching(self.values, cells.highest)
        self.values[cells.slot[cells.tails]] = after[cells.tails]

    def before(self, cells: Cells, after: Column) -> Column:
        """The value each cell found: what the cell before it left, or what was kept."""
        found = np.empty_like(after)
        found[1:] = after[:-1]
        found[cells.heads] = self.at(cells.slot[cells.heads])
        return found

    def running(self, cells: Cells, changes: Numbers) -> Numbers:
        """What was kept and all changes since, after each cell; integers, modulo 2**64."""
        total = np.cumsum(changes)
        base = total[cells.heads] - changes[cells.heads] - self.at(cells.slot[cells.heads])
        return total - base[cells.group]
