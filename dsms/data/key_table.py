"""KeyTable: maps rows of key columns to small integers (slots); released slots are reused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.data.batch import NULLS_SUFFIX, Batch, Column

Nullable = tuple[Column, Column | None]  # values and null mask
Numbers = NDArray[np.int64]

HASH_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
NULL_HASH = np.uint64(0xD1B54A32D192ED03)  # hash of every null
EMPTY_BUCKET = -1  # not taken
CLAIMED_BUCKET = -2  # and below: taken by a row of this batch without a slot yet
MAX_RELEASED_SLOTS = 1024  # released slots beyond this trigger a rebuild of the table


def hash_rows(columns: Sequence[Nullable]) -> NDArray[np.uint64]:
    """Return a hash of each row of these columns."""
    mixed = np.zeros(len(columns[0][0]) if columns else 0, dtype=np.uint64)
    for values, nulls in columns:
        bits = _bits(normalize_keys(values, None))
        mixed ^= bits if nulls is None else np.where(nulls, NULL_HASH, bits)
        mixed += HASH_INCREMENT
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def normalize_keys(values: Column, nulls: Column | None) -> Column:
    """Normalise a column: no -0.0, one NaN, one value beneath every null."""
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


def nullable_columns(rows: Batch, names: Sequence[str]) -> list[Nullable]:
    """Return these columns, each with its null mask."""
    return [(rows.columns[name], rows.columns.get(name + NULLS_SUFFIX)) for name in names]


def to_columns(names: Sequence[str], columns: Sequence[Nullable]) -> dict[str, Column]:
    """Return nullable columns as a batch's columns, with null columns where there are nulls."""
    named: dict[str, Column] = {}
    for name, (values, nulls) in zip(names, columns, strict=True):
        named[name] = values
        if nulls is not None and nulls.any():
            named[name + NULLS_SUFFIX] = nulls
    return named


def grow_to(array: Column, length: int) -> Column:
    """Return the array, or a longer zero-filled copy with room for at least this many entries."""
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
    """Return floats as their bits, so that NaN equals NaN; other columns unchanged."""
    return values.view(np.int64) if values.dtype.kind == "f" else values


class KeyTable:
    """Maps keys to slots; its memory depends on the keys in use, not on all keys ever seen.

    A table of buckets with open addressing: a key is looked for from the bucket its hash names onwards, whole columns
    of keys at a time, until a bucket holds it or none. Real values are compared, so a bad hash costs time alone.
    """

    def __init__(self) -> None:
        self._values: list[Column] = []  # key values by column and slot
        self._nulls: list[Column] = []
        self._with_nulls: list[bool] = []  # by column: whether it ever had nulls
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._used = np.zeros(0, dtype=bool)
        self._live = 0
        self.high = 0  # all slots are below this
        self._free = np.zeros(0, dtype=np.int64)  # free slots
        self._table = np.full(64, EMPTY_BUCKET, dtype=np.int64)
        self._taken = 0  # buckets in use

    def __len__(self) -> int:
        return self._live

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.high:  # string hashes differ between processes
            keys = zip(self._values, self._nulls, strict=True)
            self._hashes = hash_rows([(values[: self.high], nulls[: self.high]) for values, nulls in keys])
            self._rebuild(0)

    def of(self, columns: Sequence[Nullable]) -> Numbers:
        """Return the slot of each row; new keys get slots in the order of their first rows."""
        plains = [(normalize_keys(values, nulls), nulls) for values, nulls in columns]
        hashed = hash_rows(plains)
        if not self._values:
            self._values = [np.zeros(0, dtype=values.dtype) for values, _ in plains]
            self._nulls = [np.zeros(0, dtype=bool) for _ in plains]
            self._with_nulls = [False] * len(plains)
        slots = self._find(plains, hashed)
        unknown = np.flatnonzero(slots == EMPTY_BUCKET)
        if len(slots) - len(unknown) and self._live + len(self._free) < self.high:
            self._revive(slots if not len(unknown) else slots[slots >= 0])
        if len(unknown):
            new = [(values[unknown], None if nulls is None else nulls[unknown]) for values, nulls in plains]
            slots[unknown] = self._insert(new, hashed[unknown])
        return slots

    def keys(self, slots: Numbers) -> list[Nullable]:
        """Return the keys of these slots by column."""
        nulls = [column[slots] for column in self._nulls]
        return [(values[slots], null if null.any() else None) for values, null in zip(self._values, nulls, strict=True)]

    def live(self) -> Numbers:
        """Return the slots in use."""
        return np.flatnonzero(self._used[: self.high])

    def release(self, slots: Numbers) -> None:
        """Release slots; each keeps its key until it is reused."""
        self._used[slots] = False
        self._live = int(np.count_nonzero(self._used[: self.high])) if len(slots) else self._live
        if self.high - len(self._free) - self._live > max(MAX_RELEASED_SLOTS, self._live):
            self._rebuild(0)

    def _revive(self, slots: Numbers) -> None:
        """Take back released slots whose keys have come back."""
        again = slots[~self._used[slots]]
        if len(again):
            self._used[again] = True
            self._live = int(np.count_nonzero(self._used[: self.high]))

    def _same(self, slots: Numbers, columns: Sequence[Nullable], rows: Numbers | slice) -> NDArray[np.bool_]:
        """Return, row by row, whether the slot's key equals the row's."""
        same = np.ones(len(slots), dtype=bool)
        for i, (values, nulls) in enumerate(columns):
            same &= _as_bits(self._values[i])[slots] == _as_bits(values)[rows]
            if nulls is not None or self._with_nulls[i]:
                same &= self._nulls[i][slots] == (False if nulls is None else nulls[rows])
        return same

    def _alike(
        self, slots: Numbers, columns: Sequence[Nullable], hashed: NDArray[np.uint64], rows: Numbers | slice
    ) -> NDArray[np.bool_]:
        """The same, comparing hashes first where values are expensive to compare; EMPTY_BUCKET matches nothing."""
        there: NDArray[np.bool_] = slots != EMPTY_BUCKET
        if all(values.dtype != object for values, _ in columns):
            there &= self._same(slots, columns, rows)
            return there
        there &= self._hashes[slots] == hashed[rows]
        ask = np.flatnonzero(there)
        there[ask] = self._same(slots[ask], columns, ask if isinstance(rows, slice) else rows[ask])
        return there

    def _find(self, columns: Sequence[Nullable], hashed: NDArray[np.uint64]) -> Numbers:
        """Return the slots of rows whose keys are in the table, EMPTY_BUCKET for others."""
        mask = len(self._table) - 1
        bucket: Numbers = hashed.view(np.int64) & mask
        slots: Numbers = self._table[bucket]
        if not self.high:
            return slots
        rows: Numbers | slice = slice(None)
        found = slots
        while True:
            missed = np.flatnonzero((found != EMPTY_BUCKET) & ~self._alike(found, columns, hashed, rows))
            if not len(missed):
                return slots
            rows = missed if isinstance(rows, slice) else rows[missed]
            bucket = (bucket[missed] + 1) & mask
            found = self._table[bucket]
            slots[rows] = found

    def _insert(self, columns: Sequence[Nullable], hashed: NDArray[np.uint64]) -> Numbers:
        """Assign slots to rows whose keys are not in the table."""
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
        """Return, for each row, the first row with the same key and the bucket it has taken."""
        mask = len(self._table) - 1
        bucket: Numbers = hashed.view(np.int64) & mask
        owner = np.zeros(len(hashed), dtype=np.int64)
        rows = np.arange(len(hashed))
        while len(rows):
            candidates = bucket[rows]
            free = np.flatnonzero(self._table[candidates] == EMPTY_BUCKET)[::-1]
            self._table[candidates[free]] = CLAIMED_BUCKET - rows[free]  # in reverse, so that the first row wins
            holder = CLAIMED_BUCKET - self._table[candidates]
            mine = holder >= 0  # else the bucket holds another key
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
        self._used = grow_to(self._used, self.high)
        self._used[slots] = True
        self._live += len(slots)
        self._hashes = grow_to(self._hashes, self.high)
        self._hashes[slots] = hashed
        for i, (values, nulls) in enumerate(columns):
            self._values[i] = grow_to(self._values[i], self.high)
            self._values[i][slots] = values
            self._nulls[i] = grow_to(self._nulls[i], self.high)
            self._nulls[i][slots] = False if nulls is None else nulls
            self._with_nulls[i] |= nulls is not None and bool(nulls.any())

    def _rebuild(self, coming: int) -> None:
        """Rebuild the table with only the keys in use and room for more."""
        slots = self.live()
        self._free = np.flatnonzero(~self._used[: self.high])
        self._taken = len(slots)
        self._table = np.full(1 << (4 * (len(slots) + coming) + 63).bit_length(), EMPTY_BUCKET, dtype=np.int64)
        mask = len(self._table) - 1
        bucket = self._hashes[slots].view(np.int64) & mask
        while len(slots):
            free = self._table[bucket] == EMPTY_BUCKET
            self._table[bucket[free]] = slots[free]
            open_ = self._table[bucket] != slots
            slots, bucket = slots[open_], (bucket[open_] + 1) & mask
