"""Which rows have a key: sorted runs of keys and positions, the small ones merged into ever larger ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsms.joins.keys import CODE_BITS, Ints
from dsms.joins.search import places

OFFSET_BITS = 62 - CODE_BITS  # one is left for searching
SPAN = 2**OFFSET_BITS  # positions in a run, and keys looked up at once
OFFSETS = SPAN - 1
SHORT = 2**16  # codes below this are sorted digit by digit, which is five times as fast
SPARSE = 4  # places in a table of where each code begins, for each row
CANDIDATES = 8  # rows for each key, up to which it is faster to look at all than to search for the first and last
NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class _Table:
    """Where the rows of a code begin, or of neighbouring codes if there are far more codes than rows."""

    lowest: int  # code
    shift: int  # of codes, so that neighbours are one
    begins: Ints
    rows: Ints

    @classmethod
    def of(cls, entries: Ints, base: int) -> _Table:
        lowest, highest = int(entries[0]) >> OFFSET_BITS, int(entries[-1]) >> OFFSET_BITS
        shift = max(0, ((highest - lowest) // (SPARSE * len(entries))).bit_length())
        begins = np.zeros((highest - lowest >> shift) + 2, dtype=np.int64)
        np.cumsum(np.bincount((entries >> OFFSET_BITS) - lowest >> shift), out=begins[1:])
        return cls(lowest, shift, begins, (entries & OFFSETS) + base)

    def find(self, codes: Ints, most: int) -> tuple[Ints, Ints] | None:
        """The rows with these codes, or with neighbours of them: the number of the code, the row; None: too many."""
        slots = codes if not self.lowest and not self.shift else codes - self.lowest >> self.shift
        first = self.begins.take(slots, mode="clip")  # above all others: from the end to the end; below: from 0 to 0
        counts = self.begins.take(slots + 1, mode="clip") - first
        ends = np.cumsum(counts)
        found = int(ends[-1]) if len(ends) else 0
        if found > most:
            return None
        first -= ends
        first += counts
        places = np.repeat(first, counts)
        places += np.arange(found)
        return np.repeat(np.arange(len(codes)), counts), self.rows.take(places)


@dataclass
class _Run:
    """The rows from a position up to another; an entry is a key's code and how far from the first its row is."""

    base: int
    end: int
    entries: Ints
    _table: _Table | None = None

    def table(self) -> _Table:
        """The same by code; of a run that has entries."""
        if self._table is None:
            self._table = _Table.of(self.entries, self.base)
        return self._table

    def first(self, wanted: Ints, positions: Ints) -> Ints:
        """Where the entries of keys begin that are at or after a position; `wanted` are codes, shifted."""
        return places(self.entries, wanted + np.minimum(np.maximum(positions - self.base, 0), self.end - self.base))


class Index:
    """Finds all rows with a key in a range of positions."""

    def __init__(self, start: int = 0) -> None:
        self.start = start  # rows before this have been let go
        self.end = start  # rows from here on have not been added
        self.exact = True  # whether no two keys have the same code
        self._runs: list[_Run] = []
        self._latest: _Run | None = None  # as it was added

    def add(self, codes: Ints, exact: bool, rows: Ints | None = None) -> None:
        """More rows, in their order; `rows` says which of them have a key."""
        self.exact = self.exact and exact
        for cut in range(0, len(codes), SPAN // 2):  # half, so that two can be merged
            part = codes[cut : cut + SPAN // 2]
            some = None if rows is None else rows[(rows >= cut) & (rows < cut + len(part))] - cut
            entries = _entries(part, some)
            self._latest = _Run(self.end, self.end + len(part), entries)
            self._runs.append(self._latest)
            self.end += len(part)
            self._merge()

    def drop(self, start: int) -> None:
        """Rows before this position are not asked for any more."""
        self.start = start
        while self._runs and self._runs[0].end <= start:
            del self._runs[0]

    def latest(self, rows: Ints) -> Ints | None:
        """The keys of these rows as `wanted`, if they are those added last."""
        run = self._latest
        if run is None or len(rows) != run.end - run.base or not np.array_equal(rows, np.arange(run.base, run.end)):
            return None
        return run.entries

    def find(self, codes: Ints, low: Ints, high: Ints, asked: Ints | None = None) -> tuple[Ints, Ints]:
        """The rows with these codes at positions from `low` up to `high`: the number of the code, the position.

        They come in the order of the codes, then of positions; `asked` says which of the codes to look up.
        """
        if len(codes) > SPAN:
            parts = [self._part(codes, low, high, asked, cut) for cut in range(0, len(codes), SPAN)]
            return np.concatenate([which for which, _ in parts]), np.concatenate([rows for _, rows in parts])
        return self.find_sorted(_entries(codes, asked), low, high)

    def candidates(self, codes: Ints) -> tuple[list[tuple[Ints, Ints]], bool] | None:
        """All rows with these codes wherever they lie, let go or not: in pieces, each in the order that `find` has.

        And whether none with another code is among them. None: it is faster to search.
        """
        parts: list[tuple[Ints, Ints]] = []
        room, exact = CANDIDATES * len(codes), True
        for run in self._runs:
            if len(run.entries):
                table = run.table()
                found = table.find(codes, room)
                if found is None:
                    return None
                parts.append(found)
                room -= len(found[0])
                exact = exact and not table.shift
        return parts, exact

    def find_sorted(self, wanted: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The same for codes and their numbers in one, sorted.

        Neighbouring keys are found in neighbouring places, which is four times as fast as here and there.
        """
        numbers = wanted & OFFSETS
        wanted = wanted - numbers
        count = len(low)
        low, high = low[numbers], high[numbers]
        found = [self._within(run, wanted, numbers, low, high, count) for run in self._runs]
        return in_order(found)

    def _part(self, codes: Ints, low: Ints, high: Ints, asked: Ints | None, cut: int) -> tuple[Ints, Ints]:
        here = slice(cut, cut + SPAN)
        some = None if asked is None else asked[(asked >= cut) & (asked < cut + SPAN)] - cut
        which, rows = self.find(codes[here], low[here], high[here], some)
        return which + cut, rows

    def _within(self, run: _Run, wanted: Ints, numbers: Ints, low: Ints, high: Ints, count: int) -> tuple[Ints, Ints]:
        """What one run has of the keys, in the order of their numbers."""
        first = run.first(wanted, low)
        counts = run.first(wanted, high) - first
        hits = np.flatnonzero(counts > 0)
        if not len(hits):
            return NOTHING, NOTHING
        many, begin = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        many[numbers[hits]] = counts[hits]
        begin[numbers[hits]] = first[hits]
        which = np.repeat(np.arange(count), many)
        begin -= np.cumsum(many) - many
        places = begin[which] + np.arange(len(which))
        return which, (run.entries[places] & OFFSETS) + run.base

    def _merge(self) -> None:
        """Keep each run more than twice as long as the one after it: a row is then sorted anew only so often."""
        while len(self._runs) > 1:
            one, two = self._runs[-2:]
            base = max(one.base, min(self.start, two.base))
            if len(one.entries) > 2 * len(two.entries) or two.end - base > SPAN:
                return
            older = one.entries
            if base > one.base:
                left = np.flatnonzero((older & OFFSETS) >= base - one.base)
                older = older.take(left) - (base - one.base)
            entries = np.concatenate([older, two.entries + (two.base - base)])
            entries.sort(kind="stable")  # finds the two sorted halves
            self._runs[-2:] = [_Run(base, two.end, entries)]


def in_order(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """What was found in each run, together in the order of the keys' numbers."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NOTHING, NOTHING
    which = np.concatenate([part for part, _ in parts])
    order = np.argsort(which, kind="stable")
    return which[order], np.concatenate([rows for _, rows in parts])[order]


def unsorted(entries: Ints) -> Ints:
    """The codes of sorted entries, in the order of their numbers; none is left out."""
    codes = np.empty_like(entries)
    codes[entries & OFFSETS] = entries >> OFFSET_BITS
    return codes


def _entries(codes: Ints, some: Ints | None) -> Ints:
    """Codes and their numbers in one, sorted; `some` says which of them."""
    if some is None and len(codes) and int(codes.max()) < SHORT:
        order = np.argsort(codes.astype(np.uint16), kind="stable")
        return codes.take(order) << OFFSET_BITS | order
    entries = codes << OFFSET_BITS | np.arange(len(codes))
    if some is not None:
        entries = entries[some]
    entries.sort()
    return entries
