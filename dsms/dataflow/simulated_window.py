"""The window of the dataflow simulator: a log of timestamped changes, which can be read as of any timestamp."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Row = frozenset[tuple[str, Hashable]]  # attributes with their values
Contents = dict[Row, int]  # the number of copies of each row


class WindowChange(NamedTuple):
    """An insertion or deletion of a row."""

    row: Row
    sign: int
    stamp: int = -1  # timestamp
    item: int = -1  # whose transaction made the change
    place: int = -1  # in the window's log


@dataclass
class DataflowWindow:
    """All changes in the order of writing; with `rows`, the window holds only that many of the latest rows."""

    rows: int | None = None
    log: list[WindowChange] = field(default_factory=list)
    highest: int = -1  # the highest timestamp of a change written to it or compared with it
    _held: list[Row] = field(default_factory=list)  # its rows, oldest first, if their number is limited

    def relocate(self, row: Row, sign: int) -> list[tuple[Row, int]]:
        """Return the changes that recording a row causes: evictions, then the row; none if it is already evicted."""
        if self.rows is None:
            return [(row, sign)]
        if sign < 0:
            if row not in self._held:
                return []
            self._held.remove(row)
            return [(row, sign)]
        self._held.append(row)
        evicted = self._held[: -self.rows]
        del self._held[: -self.rows]
        return [*((old, -1) for old in evicted), (row, sign)]

    def write(self, row: Row, sign: int, stamp: int, item: int) -> WindowChange:
        """Append a change to the log, and return it."""
        change = WindowChange(row, sign, stamp, item, len(self.log))
        self.log.append(change)
        self.highest = max(self.highest, stamp)
        return change

    def matching(self, change: WindowChange, on: Sequence[str], seen: Callable[[WindowChange], bool]) -> Contents:
        """Return the rows that equal a change's row on some attributes, counting only the changes that `seen` accepts.

        A count may be negative while a deletion has overtaken its insertion.
        """
        self.highest = max(self.highest, change.stamp)
        key = _key_of(change.row, on)
        return _net_contents(other for other in self.log if seen(other) and _key_of(other.row, on) == key)

    @property
    def contents(self) -> Contents:
        """The current rows."""
        return _net_contents(self.log)


def _net_contents(changes: Iterable[WindowChange]) -> Contents:
    """Return the net counts of changes."""
    counts: Counter[Row] = Counter()
    for change in changes:
        counts[change.row] += change.sign
    return {row: count for row, count in counts.items() if count}


def _key_of(row: Row, on: Sequence[str]) -> Row:
    """Return a row's values of some attributes."""
    return frozenset(pair for pair in row if pair[0] in on)
