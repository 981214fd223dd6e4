"""Windows that remember every change with its timestamp, so that they can be read as they were at any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Row = frozenset[tuple[str, Hashable]]  # attributes with their values
Contents = dict[Row, int]  # how often each row is there


class Change(NamedTuple):
    """A row that comes or goes: with which timestamp, by which item's transaction, and where in its window's log."""

    row: Row
    sign: int
    stamp: int = -1
    item: int = -1
    place: int = -1


@dataclass
class Window:
    """All changes in the order of their writing; with `rows` only so many of the latest rows stay."""

    rows: int | None = None
    log: list[Change] = field(default_factory=list)
    highest: int = -1  # the highest timestamp of anything written to it or compared with it
    _held: list[Row] = field(default_factory=list)  # what is in it, the oldest first, where rows are limited

    def relocate(self, row: Row, sign: int) -> list[tuple[Row, int]]:
        """What the recording of a row comes to: first what leaves, then the row; nothing if it had left before."""
        if self.rows is None:
            return [(row, sign)]
        if sign < 0:
            if row not in self._held:
                return []
            self._held.remove(row)
            return [(row, sign)]
        self._held.append(row)
        gone = self._held[: -self.rows]
        del self._held[: -self.rows]
        return [*((old, -1) for old in gone), (row, sign)]

    def write(self, row: Row, sign: int, stamp: int, item: int) -> Change:
        """The change as it now stands in the log."""
        change = Change(row, sign, stamp, item, len(self.log))
        self.log.append(change)
        self.highest = max(self.highest, stamp)
        return change

    def matching(self, change: Change, on: Sequence[str], seen: Callable[[Change], bool]) -> Contents:
        """The rows equal to one on some attributes, by the changes that are seen.

        A row may be there less than 0 times, as long as what takes it away has overtaken what brings it.
        """
        self.highest = max(self.highest, change.stamp)
        wanted = _part(change.row, on)
        return _counted(other for other in self.log if seen(other) and _part(other.row, on) == wanted)

    @property
    def contents(self) -> Contents:
        """What is in it now."""
        return _counted(self.log)


def _counted(changes: Iterable[Change]) -> Contents:
    """What changes add up to."""
    counts: Counter[Row] = Counter()
    for change in changes:
        counts[change.row] += change.sign
    return {row: count for row, count in counts.items() if count}


def _part(row: Row, on: Sequence[str]) -> Row:
    """What a row says of some attributes."""
    return frozenset(pair for pair in row if pair[0] in on)
