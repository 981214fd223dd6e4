"""How much of a log is stored and not yet where it should be: in bytes, whatever place of it one asks about."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

GRAIN = 64 * 1024  # bytes between two places that are remembered


class Arrears:
    """The sizes of a log's entries, added up: exact to a grain, in little memory; `forget` what the log forgets."""

    def __init__(self, entries: Iterable[tuple[int, int]] = (), grain: int = GRAIN) -> None:
        self._grain = grain
        self._offsets, self._sums = [0], [0]  # of an entry, and the bytes of all up to it
        self._last = self._total = 0
        for offset, size in entries:
            self.add(offset, size)

    def add(self, offset: int, size: int) -> None:
        """The log has an entry more, behind all others."""
        self._total += size
        self._last = offset
        if self._total - self._sums[-1] >= self._grain:
            self._offsets.append(offset)
            self._sums.append(self._total)

    def after(self, offset: int) -> int:
        """The bytes after this place: perhaps a grain too many, never too few."""
        if offset >= self._last:
            return 0
        return self._total - self._sums[max(0, bisect_right(self._offsets, offset) - 1)]

    def forget(self, upto: int) -> None:
        """Nobody will ask about what is before this."""
        gone = max(0, bisect_right(self._offsets, upto) - 1)
        del self._offsets[:gone], self._sums[:gone]
