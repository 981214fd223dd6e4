"""Caches the last entries of a gateway's log, so that log readers seldom read the file."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dsms.net.wire import Advance, Data, End

CACHE_LIMIT_BYTES = 64 * 1024 * 1024
LogMessage = Data | Advance | End


class CachedEntry(NamedTuple):
    """A message, its offset in the log, and its size."""

    offset: int
    message: LogMessage | None  # None: of a stream that no longer exists
    size: int


class LogCache:
    """The last entries of a log, in order, without gaps; `last` is the offset of the log's end."""

    def __init__(self, last: int, size: int = CACHE_LIMIT_BYTES) -> None:
        self.last = self._since = last  # all entries after `_since` are cached
        self._entries: deque[CachedEntry] = deque()
        self._limit_bytes, self._size = size, 0

    def add(self, entry: CachedEntry) -> None:
        """Append an entry."""
        self._entries.append(entry)
        self._size += entry.size
        self.last = entry.offset
        while self._size > self._limit_bytes:
            gone = self._entries.popleft()
            self._size -= gone.size
            self._since = gone.offset

    def after(self, offset: int, size: int) -> list[CachedEntry] | None:
        """Entries after an offset, up to a number of bytes; None if the cache no longer has them."""
        if offset < self._since:
            return None
        entries: list[CachedEntry] = []
        if self._entries:
            start = max(0, len(self._entries) - (self.last - offset))  # exact where offsets have no gaps, else earlier
            for place in range(start, len(self._entries)):
                if size <= 0:
                    break
                entry = self._entries[place]
                if entry.offset > offset:
                    entries.append(entry)
                    size -= entry.size
        return entries
