"""Counts the bytes of a log after an offset: how far a reader lags behind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

LAG_RESOLUTION_BYTES = 64 * 1024  # between two remembered offsets


class LogLag:
    """Running sums of a log's entries, exact to a grain, in little memory."""

    def __init__(self, entries: Iterable[tuple[int, int]] = (), grain: int = LAG_RESOLUTION_BYTES) -> None:
        self._grain = grain
        self._offsets, self._sums = [0], [0]  # of an entry, and the bytes of all entries up to it
        self._last = self._total = 0
        for offset, size in entries:
            self.add(offset, size)

    def add(self, offset: int, size: int) -> None:
        """Append an entry."""
        self._total += size
        self._last = offset
        if self._total - self._sums[-1] >= self._grain:
            self._offsets.append(offset)
            self._sums.append(self._total)

    def after(self, offset: int) -> int:
        """The bytes after an offset: at most a grain too many, never too few."""
        if offset >= self._last:
            return 0
        return self._total - self._sums[max(0, bisect_right(self._offsets, offset) - 1)]

    def truncate(self, upto: int) -> None:
        """Forget the sums before an offset."""
        gone = max(0, bisect_right(self._offsets, upto) - 1)
        del self._offsets[:gone], self._sums[:gone]
