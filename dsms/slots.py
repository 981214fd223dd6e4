"""Small numbers for keys: equal rows of keys share one, and those no longer in use are given out again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.batch import NULLS, Batch, Column

Nullable = tuple[Column, Column | None]  # values, and where there are none
Numbers = NDArray[np.int64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NULL = np.uint64(0xD1B54A32D192ED03)  # what every null counts as
EMPTY = -1  # a bucket of the table that nobody has taken
CLAIM = -2  # and below: taken by a row of this batch that has no slot yet
SPARE = 1024  # so many released slots may wait for their table to be cleared


def hashes(columns: Sequence[Nullable]) -> NDArray[np.uint64]:
    """A well mixed number for each row of these columns: equal rows have equal ones."""
    mixed = np.zeros(len(columns[0][0]) if columns else 0, dtype=np.uint64)
    for values, nulls in columns:
        bits = _bits(plain(values, None))
        mixed ^= bits if nulls is None else np.where(nulls, NULL, bits)
        mixed += GOLDEN
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def plain(values: Column, nulls: Column | None) -> Column:
    """The column with one form for each value: no -0.0, one kind of nan, the same beneath every null."""
    if values.dtype.kind == "U":
        values = values.astype(object)
    if values.dtype.kind == "f":
        values = values + 0.0
        strange = np.isnan(values)
        if strange.any():
            values[strange] = np.nan
    if nulls is None or not nulls.any():
        return values
    return np.where(nulls, np.asarray("" if values.dtype == object else 0, dtype=values.dtype), values)


def nullable(rows: Batch, names: Sequence[str]) -> list[Nullable]:
    """These columns, each with where its nulls are."""
    return [(rows.columns[name], rows.columns.get(name + NULLS)) for name in names]


def columned(names: Sequence[str], columns: Sequence[Nullable]) -> dict[str, Column]:
    """The same the other way: columns for a batch, with companions where there are nulls."""
    named: dict[str, Column] = {}
    for name, (values, nulls) in zip(names, columns, strict=True):
        named[name] = values
        if nulls is not None and nulls.any():
            named[name + NULLS] = nulls
    return named


def reaching(array: Column, length: int) -> Column:
    """The array, or a longer copy with room for at least so many entries, nothing in the new ones."""
    if len(array) >= length:
        return array
    longer = np.zeros(max(length, 2 * len(array), 64), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _bits(values: Column) -> NDArray[np.uint64]:
    if values.dtype == object:
        return np.fromiter(map(hash, values), np.int64, len(values)).view(np.uint64)
    if values.dtype.kind == "f":
        return values.view(np.uint64)
    return values.astype(np.int64, copy=False).view(np.uint64)


def _as_bits(values: Column) -> Column:
    """Floats as what they are made of, so that nan equals nan; all else as it is."""
    return values.view(np.int64) if values.dtype.kind == "f" else values


class Slots:
    """The number of each key; its memory goes by how many keys are in use, not by how many there ever were.

    A table of buckets with open addressing: a key is looked for from the bucket its hash names onwards, whole columns
    of keys at a time, until a bucket holds it or none. Real values are compared, so a bad hash costs time alone.
    """

    def __init__(self) -> None:
        self._values: list[Column] = []  # of the keys, by column, then by slot
        self._nulls: list[Column] = []
        self._with_nulls: list[bool] = []  # whether a column ever had some
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._used = np.zeros(0, dtype=bool)
        self._live = 0
        self.high = 0  # slots are below this
        self._free = np.zeros(0, dtype=np.int64)  # below `high`, and in no bucket
        self._table = np.full(64, EMPTY, dtype=np.int64)
        self._taken = 0  # buckets

    def __len__(self) -> int:
        return self._live

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.high:  # a text has another hash in every process
            keys = zip(self._values, self._nulls, strict=True)
            self._hashes = hashes([(values[: self.high], nulls[: self.high]) for values, nulls in keys])
            self._rebuild(0)

    def of(self, columns: Sequence[Nullable]) -> Numbers:
        """The slot of each row; keys not in use get new ones, in the order of their first rows."""
        plains = [(plain(values, nulls), nulls) for values, nulls in columns]
        hashed = hashes(plains)
        if not self._values:
            self._values = [np.zeros(0, dtype=values.dtype) for values, _ in plains]
            self._nulls = [np.zeros(0, dtype=bool) for _ in plains]
            self._with_nulls = [False] * len(plains)
        slots = self._find(plains, hashed)
        unknown = np.flatnonzero(slots == EMPTY)
        if len(slots) - len(unknown) and self._live + len(self._free) < self.high:
            self._revive(slots if not len(unknown) else slots[slots >= 0])
        if len(unknown):
            new = [(values[unknown], None if nulls is None else nulls[unknown]) for values, nulls in plains]
            slots[unknown] = self._insert(new, hashed[unknown])
        return slots

    def keys(self, slots: Numbers) -> list[Nullable]:
        """The keys of these slots, column by column."""
        nulls = [column[slots] for column in self._nulls]
        return [(values[slots], null if null.any() else None) for values, null in zip(self._values, nulls, strict=True)]

    def live(self) -> Numbers:
        """The slots in use."""
        return np.flatnonzero(self._used[: self.high])

    def release(self, slots: Numbers) -> None:
        """These are no longer in use; until others get them they remember their keys."""
        self._used[slots] = False
        self._live = int(np.count_nonzero(self._used[: self.high])) if len(slots) else self._live
        if self.high - len(self._free) - self._live > max(SPARE, self._live):
            self._rebuild(0)

    def _revive(self, slots: Numbers) -> None:
        """Released keys that came back before their slots were given to others."""
        again = slots[~self._used[slots]]
        if len(again):
            self._used[again] = True
            self._live = int(np.count_nonzero(self._used[: self.high]))

    def _same(self, slots: Numbers, columns: Sequence[Nullable], rows: Numbers | slice) -> NDArray[np.bool_]:
        """Whether the keys of these slots are those in these rows, one by one."""
        same = np.ones(len(slots), dtype=bool)
        for i, (values, nulls) in enumerate(columns):
            same &= _as_bits(self._values[i])[slots] == _as_bits(values)[rows]
            if nulls is not None or self._with_nulls[i]:
                same &= self._nulls[i][slots] == (False if nulls is None else nulls[rows])
        return same

    def _alike(
        self, slots: Numbers, columns: Sequence[Nullable], hashed: NDArray[np.uint64], rows: Numbers | slice
    ) -> NDArray[np.bool_]:
        """The same, asking the hashes first where values are dear to compare; EMPTY is like nothing."""
        there: NDArray[np.bool_] = slots != EMPTY
        if all(values.dtype != object for values, _ in columns):
            there &= self._same(slots, columns, rows)
            return there
        there &= self._hashes[slots] == hashed[rows]
        ask = np.flatnonzero(there)
        there[ask] = self._same(slots[ask], columns, ask if isinstance(rows, slice) else rows[ask])
        return there

    def _find(self, columns: Sequence[Nullable], hashed: NDArray[np.uint64]) -> Numbers:
        """The slots of rows whose keys are in the table, EMPTY for the others."""
        mask = len(self._table) - 1
        bucket: Numbers = hashed.view(np.int64) & mask
        slots: Numbers = self._table[bucket]
        if not self.high:
            return slots
        rows: Numbers | slice = slice(None)
        found = slots
        while True:
            missed = np.flatnonzero((found != EMPTY) & ~self._alike(found, columns, hashed, rows))
            if not len(missed):
                return slots
            rows = missed if isinstance(rows, slice) else rows[missed]
            bucket = (bucket[missed] + 1) & mask
            found = self._table[bucket]
            slots[rows] = found

    def _insert(self, columns: Sequence[Nullable], hashed: NDArray[np.uint64]) -> Numbers:
        """New slots for rows whose keys are not in the table."""
        if 2 * (self._taken + len(hashed)) > len(self._table):
            self._rebuild(len(hashed))
        owner, bucket = self._claim(columns, hashed)
        first = owner == np.arange(len(owner))
        count = int(np.count_nonzero(first))
        fresh = count - len(self._free)
        new = np.concatenate([self._free[:count], np.arange(self.high, self.high + max(fresh, 0))])
        self._free = self._free[count:]
        self.high += max(fresh, 0)
        self._keep(new, [(v[first], None if n is None else n[first]) for v, n in columns], hashed[first])
        self._table[bucket[first]] = new
        self._taken += count
        slots = np.zeros(len(owner), dtype=np.int64)
        slots[first] = new
        return slots[owner]

    def _claim(self, columns: Sequence[Nullable], hashed: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
        """For each row the first row with the same key, and the bucket that one has taken."""
        mask = len(self._table) - 1
        bucket: Numbers = hashed.view(np.int64) & mask
        owner = np.zeros(len(hashed), dtype=np.int64)
        rows = np.arange(len(hashed))
        while len(rows):
            wanted = bucket[rows]
            free = np.flatnonzero(self._table[wanted] == EMPTY)[::-1]
            self._table[wanted[free]] = CLAIM - rows[free]  # backwards: the first row has the last word
            holder = CLAIM - self._table[wanted]
            mine = holder >= 0  # else a slot with another key is there
            mine[mine] = hashed[rows[mine]] == hashed[holder[mine]]
            ask = np.flatnonzero(mine & (holder != rows))
            for values, nulls in columns:
                bits = _as_bits(values)
                mine[ask] &= bits[rows[ask]] == bits[holder[ask]]
                if nulls is not None:
                    mine[ask] &= nulls[rows[ask]] == nulls[holder[ask]]
            owner[rows[mine]] = holder[mine]
            rows = rows[~mine]
            bucket[rows] = (bucket[rows] + 1) & mask
        return owner, bucket

    def _keep(self, slots: Numbers, columns: Sequence[Nullable], hashed: NDArray[np.uint64]) -> None:
        self._used = reaching(self._used, self.high)
        self._used[slots] = True
        self._live += len(slots)
        self._hashes = reaching(self._hashes, self.high)
        self._hashes[slots] = hashed
        for i, (values, nulls) in enumerate(columns):
            self._values[i] = reaching(self._values[i], self.high)
            self._values[i][slots] = values
            self._nulls[i] = reaching(self._nulls[i], self.high)
            self._nulls[i][slots] = False if nulls is None else nulls
            self._with_nulls[i] |= nulls is not None and bool(nulls.any())

    def _rebuild(self, coming: int) -> None:
        """A table of the keys in use alone, with room for more."""
        slots = self.live()
        self._free = np.flatnonzero(~self._used[: self.high])
        self._taken = len(slots)
        self._table = np.full(1 << (4 * (len(slots) + coming) + 63).bit_length(), EMPTY, dtype=np.int64)
        mask = len(self._table) - 1
        bucket = self._hashes[slots].view(np.int64) & mask
        while len(slots):
            free = self._table[bucket] == EMPTY
            self._table[bucket[free]] = slots[free]
            open_ = self._table[bucket] != slots
            slots, bucket = slots[open_], (bucket[open_] + 1) & mask
