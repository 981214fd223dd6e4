"""Rows that go in any order: whoever is taken back, the oldest row that equals it goes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dsms.batch import NULLS, Column
from dsms.joins.buffer import LEAST, Buffer
from dsms.joins.events import NEVER
from dsms.joins.index import OFFSET_BITS, Index
from dsms.joins.keys import Ints, Mask
from dsms.joins.search import places
from dsms.slots import Slots

BORN = ".born"  # the order of a row's coming; no column of a schema has a dot
DIED = ".died"  # of its going
SLOT = ".slot"  # equal rows have the same


class Mortals:
    """Rows with the orders of their coming and going, told apart by some columns alone."""

    def __init__(self, types: Mapping[str, np.dtype[np.generic]], extra: Mapping[str, np.dtype[np.generic]]) -> None:
        whole = np.dtype(np.int64)
        self.rows = Buffer({**types, **extra, BORN: whole, DIED: whole, SLOT: whole})
        self._identity = tuple(types)
        self._slots = Slots()
        self._index = Index()
        self._gone = 0

    def record(self, columns: Mapping[str, Column], orders: Ints, comes: Mask) -> tuple[Ints, Ints]:
        """Rows that come and rows that are taken back, in order; the row that each of the latter takes, and which.

        Those taken back that equal nothing there are in neither: their numbers are missing in the second answer.
        """
        slots = self._numbered(columns, len(orders))
        new, back = np.flatnonzero(comes), np.flatnonzero(~comes)
        kept = {name: values[new] for name, values in columns.items()}
        fresh = {BORN: orders[new], DIED: np.full(len(new), NEVER), SLOT: slots[new]}
        self.rows.append({**kept, **fresh}, len(new))
        self._index.add(slots[new], True)
        if not len(back):
            return back, back
        back = back[np.lexsort((orders[back], slots[back]))]
        taken, able = self._oldest(slots[back], orders[back])
        self.rows.put(DIED, taken, orders[back[able]])
        self._gone += len(taken)
        return taken, back[able]

    def there(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        """Which of these rows, known to have come, have not gone at these moments."""
        return self.rows.take(DIED, rows) > orders[which]

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        """Positions between which lie the rows that are there at these moments."""
        return np.full_like(orders, self.rows.start), self.rows.start + places(self.rows[BORN], orders)

    def crowded(self) -> bool:
        """Whether it is time to let go the rows that have gone."""
        return self._gone > max(LEAST, len(self.rows) // 2)

    def left(self) -> Ints:
        """The rows that have not gone."""
        return self.rows.start + np.flatnonzero(self.rows[DIED] == NEVER)

    def renumber(self) -> None:
        """Tell the rows apart anew, as there are others or the values they are told apart by have changed."""
        self._slots = Slots()
        self._gone = int(np.count_nonzero(self.rows[DIED] != NEVER))
        columns = {name: self.rows[name] for name in self._identity}
        columns |= {name + NULLS: self.rows[name + NULLS] for name in self._identity if name + NULLS in self.rows}
        slots = self._numbered(columns, len(self.rows))
        self.rows.put(SLOT, np.arange(self.rows.start, self.rows.end), slots)
        self._index = Index(self.rows.start)
        self._index.add(slots, True)

    def _numbered(self, columns: Mapping[str, Column], rows: int) -> Ints:
        if not self._identity or not rows:
            return np.zeros(rows, dtype=np.int64)
        return self._slots.of([(columns[name], columns.get(name + NULLS)) for name in self._identity])

    def _oldest(self, slots: Ints, orders: Ints) -> tuple[Ints, Ints]:
        """The rows that go, and which of those taken back they equal; slots sorted, orders sorted within each."""
        distinct, group = np.unique(slots, return_inverse=True)
        start, end = self.rows.start, self.rows.end
        whose, rows = self._index.find(distinct, np.full_like(distinct, start), np.full_like(distinct, end))
        alive = self.rows.take(DIED, rows) == NEVER
        whose, rows = whose[alive], rows[alive]
        before = np.searchsorted(self.rows[BORN], orders)  # how many rows of any kind had come
        far = max(OFFSET_BITS, int(end - start).bit_length())
        came = np.searchsorted(whose << far | (rows - start), group << far | before)
        first = np.searchsorted(whose, np.arange(len(distinct)))[group]
        begins = np.searchsorted(group, np.arange(len(distinct)))[group]
        number = np.arange(len(group)) - begins
        # By how many more were taken back than had come: each time that reaches a new height, there was none to take.
        excess = np.maximum(number + 1 - (came - first), 0) + group * (len(group) + 1)
        in_vain = np.maximum.accumulate(excess) - group * (len(group) + 1)
        able = _steady(in_vain, begins)
        return rows[(first + number - in_vain)[able]], able


def _steady(in_vain: Ints, begins: Ints) -> Ints:
    """Where the count is what it was before, counted anew from where each group begins."""
    before = np.concatenate([[0], in_vain[:-1]])
    before[begins] = 0
    return np.flatnonzero(in_vain == before)
