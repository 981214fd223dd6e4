"""The end of a gateway's log, as it was read last: so that what has just been stored need not be fetched again."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dsms.wire import Advance, Data, End

BYTES = 64 * 1024 * 1024
Said = Data | Advance | End


class Kept(NamedTuple):
    """What was said, and where that is in the log."""

    offset: int
    said: Said | None  # None: by a stream that there is no more
    size: int


class Tail:
    """The last entries of a log, in order, without a gap; `last` is where the log ends."""

    def __init__(self, last: int, size: int = BYTES) -> None:
        self.last = self._since = last  # all after `since` is here
        self._kept: deque[Kept] = deque()
        self._most, self._size = size, 0

    def add(self, kept: Kept) -> None:
        """What is in the log behind all others."""
        self._kept.append(kept)
        self._size += kept.size
        self.last = kept.offset
        while self._size > self._most:
            gone = self._kept.popleft()
            self._size -= gone.size
            self._since = gone.offset

    def after(self, offset: int, size: int) -> list[Kept] | None:
        """Entries after an offset, and no more once they have so many bytes; None if those are no longer here."""
        if offset < self._since:
            return None
        found: list[Kept] = []
        if self._kept:
            start = max(
                0, len(self._kept) - (self.last - offset)
            )  # offsets have no gaps; were there any, it is earlier
            for place in range(start, len(self._kept)):
                if size <= 0:
                    break
                kept = self._kept[place]
                if kept.offset > offset:
                    found.append(kept)
                    size -= kept.size
        return found
