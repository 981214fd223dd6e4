"""An index from key codes to row positions: sorted runs, merged into larger ones as in an LSM tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsms.operators.joins.state.key_codes import CODE_BITS, Ints
from dsms.operators.joins.state.sorted_search import search_sorted

OFFSET_BITS = 62 - CODE_BITS  # one bit is left for searching
MAX_RUN_ROWS = 2**OFFSET_BITS  # rows in a run, and keys in one lookup
OFFSET_MASK = MAX_RUN_ROWS - 1
RADIX_SORT_CODES = 2**16  # codes below this are radix sorted, which is five times as fast
TABLE_PLACES_PER_ROW = 4  # entries in a code table for each row
MAX_CANDIDATES_PER_KEY = 8  # up to this many rows, a scan is faster than a search for the first and last
EMPTY_INTS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class _CodeTable:
    """The first row of each code, or of a range of codes if there are far more codes than rows."""

    lowest: int  # code
    shift: int  # right shift of codes, so that neighbours share an entry
    begins: Ints
    rows: Ints

    @classmethod
    def of(cls, entries: Ints, base: int) -> _CodeTable:
        lowest, highest = int(entries[0]) >> OFFSET_BITS, int(entries[-1]) >> OFFSET_BITS
        shift = max(0, ((highest - lowest) // (TABLE_PLACES_PER_ROW * len(entries))).bit_length())
        begins = np.zeros((highest - lowest >> shift) + 2, dtype=np.int64)
        np.cumsum(np.bincount((entries >> OFFSET_BITS) - lowest >> shift), out=begins[1:])
        return cls(lowest, shift, begins, (entries & OFFSET_MASK) + base)

    def find(self, codes: Ints, most: int) -> tuple[Ints, Ints] | None:
        """Return (index of the code, row) of the rows with these codes or neighbours of them; None: too many."""
        slots = codes if not self.lowest and not self.shift else codes - self.lowest >> self.shift
        first = self.begins.take(slots, mode="clip")  # codes outside the table get an empty range
        counts = self.begins.take(slots + 1, mode="clip") - first
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        if total > most:
            return None
        first -= ends
        first += counts
        places = np.repeat(first, counts)
        places += np.arange(total)
        return np.repeat(np.arange(len(codes)), counts), self.rows.take(places)


@dataclass
class _SortedRun:
    """The keys of the rows from `base` to `end`; an entry is one integer: a code and the row's offset from `base`."""

    base: int
    end: int
    entries: Ints
    _table: _CodeTable | None = None

    def table(self) -> _CodeTable:
        """Return the code table of the run, which must have entries."""
        if self._table is None:
            self._table = _CodeTable.of(self.entries, self.base)
        return self._table

    def first(self, shifted_codes: Ints, positions: Ints) -> Ints:
        """Return the index of the first entry of each code at or after a position."""
        return search_sorted(
            self.entries, shifted_codes + np.minimum(np.maximum(positions - self.base, 0), self.end - self.base)
        )


class HashIndex:
    """Finds all rows with a key code in a range of positions."""

    def __init__(self, start: int = 0) -> None:
        self.start = start  # rows before this are dropped
        self.end = start  # rows from here on are not added yet
        self.exact = True  # whether no two keys have the same code
        self._runs: list[_SortedRun] = []
        self._latest: _SortedRun | None = None  # the last run added, before merges

    def add(self, codes: Ints, exact: bool, rows: Ints | None = None) -> None:
        """Add the codes of the next rows; `rows` are the indexes of those with a key, None: all."""
        self.exact = self.exact and exact
        for cut in range(0, len(codes), MAX_RUN_ROWS // 2):  # half, so that two runs can be merged
            part = codes[cut : cut + MAX_RUN_ROWS // 2]
            chosen = None if rows is None else rows[(rows >= cut) & (rows < cut + len(part))] - cut
            entries = _sort_entries(part, chosen)
            self._latest = _SortedRun(self.end, self.end + len(part), entries)
            self._runs.append(self._latest)
            self.end += len(part)
            self._merge()

    def drop(self, start: int) -> None:
        """Drop the rows before a position."""
        self.start = start
        while self._runs and self._runs[0].end <= start:
            del self._runs[0]

    def latest(self, rows: Ints) -> Ints | None:
        """Return the sorted entries of these rows if they are exactly the rows added last; otherwise None."""
        run = self._latest
        if run is None or len(rows) != run.end - run.base or not np.array_equal(rows, np.arange(run.base, run.end)):
            return None
        return run.entries

    def find(self, codes: Ints, low: Ints, high: Ints, chosen: Ints | None = None) -> tuple[Ints, Ints]:
        """Return (index of the code, position) of the rows with these codes at positions from `low` up to `high`.

        They are sorted by index, then by position; `chosen` are the indexes of the codes to look up, None: all.
        """
        if len(codes) > MAX_RUN_ROWS:
            parts = [self._find_part(codes, low, high, chosen, cut) for cut in range(0, len(codes), MAX_RUN_ROWS)]
            return np.concatenate([which for which, _ in parts]), np.concatenate([rows for _, rows in parts])
        return self.find_sorted(_sort_entries(codes, chosen), low, high)

    def candidates(self, codes: Ints) -> tuple[list[tuple[Ints, Ints]], bool] | None:
        """Return all rows with these codes at any position, dropped or not: one part for each run, sorted as by `find`.

        Also return whether all of them have exactly these codes. None: `find` is faster.
        """
        parts: list[tuple[Ints, Ints]] = []
        room, exact = MAX_CANDIDATES_PER_KEY * len(codes), True
        for run in self._runs:
            if len(run.entries):
                table = run.table()
                matches = table.find(codes, room)
                if matches is None:
                    return None
                parts.append(matches)
                room -= len(matches[0])
                exact = exact and not table.shift
        return parts, exact

    def find_sorted(self, entries: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Do as `find`, for sorted entries of a code and its index in one integer.

        Sorted lookups touch neighbouring memory, which is four times as fast as random access.
        """
        numbers = entries & OFFSET_MASK
        shifted_codes = entries - numbers
        count = len(low)
        low, high = low[numbers], high[numbers]
        matches = [self._find_in_run(run, shifted_codes, numbers, low, high, count) for run in self._runs]
        return merge_matches(matches)

    def _find_part(self, codes: Ints, low: Ints, high: Ints, chosen: Ints | None, cut: int) -> tuple[Ints, Ints]:
        here = slice(cut, cut + MAX_RUN_ROWS)
        part = None if chosen is None else chosen[(chosen >= cut) & (chosen < cut + MAX_RUN_ROWS)] - cut
        which, rows = self.find(codes[here], low[here], high[here], part)
        return which + cut, rows

    def _find_in_run(
        self, run: _SortedRun, shifted_codes: Ints, numbers: Ints, low: Ints, high: Ints, count: int
    ) -> tuple[Ints, Ints]:
        """Return the matches in one run, sorted by the index of the code."""
        first = run.first(shifted_codes, low)
        counts = run.first(shifted_codes, high) - first
        hits = np.flatnonzero(counts > 0)
        if not len(hits):
            return EMPTY_INTS, EMPTY_INTS
        matches, begin = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        matches[numbers[hits]] = counts[hits]
        begin[numbers[hits]] = first[hits]
        which = np.repeat(np.arange(count), matches)
        begin -= np.cumsum(matches) - matches
        places = begin[which] + np.arange(len(which))
        return which, (run.entries[places] & OFFSET_MASK) + run.base

    def _merge(self) -> None:
        """Merge runs until each is more than twice as long as the next, so that a row is merged only log(n) times."""
        while len(self._runs) > 1:
            one, two = self._runs[-2:]
            base = max(one.base, min(self.start, two.base))
            if len(one.entries) > 2 * len(two.entries) or two.end - base > MAX_RUN_ROWS:
                return
            older = one.entries
            if base > one.base:
                left = np.flatnonzero((older & OFFSET_MASK) >= base - one.base)
                older = older.take(left) - (base - one.base)
            entries = np.concatenate([older, two.entries + (two.base - base)])
            entries.sort(kind="stable")  # detects and merges the two sorted halves
            self._runs[-2:] = [_SortedRun(base, two.end, entries)]


def merge_matches(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Merge the matches of several runs, sorted by the index of the code."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return EMPTY_INTS, EMPTY_INTS
    which = np.concatenate([part for part, _ in parts])
    order = np.argsort(which, kind="stable")
    return which[order], np.concatenate([rows for _, rows in parts])[order]


def restore_code_order(entries: Ints) -> Ints:
    """Return the codes of sorted entries in the order of their indexes; every index must occur."""
    codes = np.empty_like(entries)
    codes[entries & OFFSET_MASK] = entries >> OFFSET_BITS
    return codes


def _sort_entries(codes: Ints, chosen: Ints | None) -> Ints:
    """Return sorted entries of a code and its index in one integer; `chosen` are the indexes to use, None: all."""
    if chosen is None and len(codes) and int(codes.max()) < RADIX_SORT_CODES:
        order = np.argsort(codes.astype(np.uint16), kind="stable")
        return codes.take(order) << OFFSET_BITS | order
    entries = codes << OFFSET_BITS | np.arange(len(codes))
    if chosen is not None:
        entries = entries[chosen]
    entries.sort()
    return entries
