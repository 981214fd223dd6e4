"""Rows that can be retracted in any order: a retraction deletes the oldest equal row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Column
from dsms.data.key_table import KeyTable
from dsms.operators.joins.state.column_buffer import MIN_CAPACITY_ROWS, ColumnBuffer
from dsms.operators.joins.state.event_order import MAX_ORDER
from dsms.operators.joins.state.key_codes import Ints, Mask
from dsms.operators.joins.state.key_index import OFFSET_BITS, HashIndex
from dsms.operators.joins.state.sorted_search import search_sorted

INSERTED_AT = ".born"  # the order of a row's insertion; no column of a schema has a dot
DELETED_AT = ".died"  # the order of its deletion
KEY_ID = ".slot"  # equal rows have the same


class RetractableRows:
    """Rows with the orders of their insertion and deletion; some columns decide which rows are equal."""

    def __init__(self, types: Mapping[str, np.dtype[np.generic]], extra: Mapping[str, np.dtype[np.generic]]) -> None:
        whole = np.dtype(np.int64)
        self.rows = ColumnBuffer({**types, **extra, INSERTED_AT: whole, DELETED_AT: whole, KEY_ID: whole})
        self._identity = tuple(types)
        self._slots = KeyTable()
        self._index = HashIndex()
        self._deleted = 0  # rows

    def record(self, columns: Mapping[str, Column], orders: Ints, inserted: Mask) -> tuple[Ints, Ints]:
        """Record insertions and retractions, in order; return the rows deleted, and which retraction deleted each.

        A retraction without an equal row is in neither.
        """
        slots = self._slots_of(columns, len(orders))
        new, retracted = np.flatnonzero(inserted), np.flatnonzero(~inserted)
        values = {name: column[new] for name, column in columns.items()}
        lifetimes = {INSERTED_AT: orders[new], DELETED_AT: np.full(len(new), MAX_ORDER), KEY_ID: slots[new]}
        self.rows.append({**values, **lifetimes}, len(new))
        self._index.add(slots[new], True)
        if not len(retracted):
            return retracted, retracted
        retracted = retracted[np.lexsort((orders[retracted], slots[retracted]))]
        deleted, matched = self._find_oldest(slots[retracted], orders[retracted])
        self.rows.put(DELETED_AT, deleted, orders[retracted[matched]])
        self._deleted += len(deleted)
        return deleted, retracted[matched]

    def is_visible(self, which: Ints, rows: Ints, orders: Ints) -> Mask:
        """Return which of these inserted rows are not yet deleted at the orders of their items."""
        return self.rows.take(DELETED_AT, rows) > orders[which]

    def span(self, orders: Ints) -> tuple[Ints, Ints]:
        """Return the first and the end position of the rows that may exist at these orders."""
        return np.full_like(orders, self.rows.start), self.rows.start + search_sorted(self.rows[INSERTED_AT], orders)

    def needs_compaction(self) -> bool:
        """Whether enough rows are deleted to free them."""
        return self._deleted > max(MIN_CAPACITY_ROWS, len(self.rows) // 2)

    def left(self) -> Ints:
        """Return the positions of the rows that are not deleted."""
        return self.rows.start + np.flatnonzero(self.rows[DELETED_AT] == MAX_ORDER)

    def renumber(self) -> None:
        """Assign new slots to all rows, after rows were removed or the compared values changed."""
        self._slots = KeyTable()
        self._deleted = int(np.count_nonzero(self.rows[DELETED_AT] != MAX_ORDER))
        columns = {name: self.rows[name] for name in self._identity}
        columns |= {
            name + NULLS_SUFFIX: self.rows[name + NULLS_SUFFIX]
            for name in self._identity
            if name + NULLS_SUFFIX in self.rows
        }
        slots = self._slots_of(columns, len(self.rows))
        self.rows.put(KEY_ID, np.arange(self.rows.start, self.rows.end), slots)
        self._index = HashIndex(self.rows.start)
        self._index.add(slots, True)

    def _slots_of(self, columns: Mapping[str, Column], rows: int) -> Ints:
        if not self._identity or not rows:
            return np.zeros(rows, dtype=np.int64)
        return self._slots.of([(columns[name], columns.get(name + NULLS_SUFFIX)) for name in self._identity])

    def _find_oldest(self, slots: Ints, orders: Ints) -> tuple[Ints, Ints]:
        """Return the row that each retraction deletes, and which retractions have one; sorted by slot, then order."""
        distinct, group = np.unique(slots, return_inverse=True)
        start, end = self.rows.start, self.rows.end
        whose, rows = self._index.find(distinct, np.full_like(distinct, start), np.full_like(distinct, end))
        alive = self.rows.take(DELETED_AT, rows) == MAX_ORDER
        whose, rows = whose[alive], rows[alive]
        before = np.searchsorted(self.rows[INSERTED_AT], orders)  # rows of any slot inserted before
        shift = max(OFFSET_BITS, int(end - start).bit_length())
        inserted = np.searchsorted(whose << shift | (rows - start), group << shift | before)
        first = np.searchsorted(whose, np.arange(len(distinct)))[group]
        begins = np.searchsorted(group, np.arange(len(distinct)))[group]
        number = np.arange(len(group)) - begins
        # By how many retractions exceed insertions: at each new maximum, a retraction has no row to delete.
        excess = np.maximum(number + 1 - (inserted - first), 0) + group * (len(group) + 1)
        unmatched = np.maximum.accumulate(excess) - group * (len(group) + 1)
        matched = _unchanged_positions(unmatched, begins)
        return rows[(first + number - unmatched)[matched]], matched


def _unchanged_positions(counts: Ints, begins: Ints) -> Ints:
    """Return where a running count equals the count before it; each group starts from 0."""
    before = np.concatenate([[0], counts[:-1]])
    before[begins] = 0
    return np.flatnonzero(counts == before)
