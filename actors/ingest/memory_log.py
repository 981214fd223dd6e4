"""A log in memory: a message is acknowledged, and forgotten, when all schedulers that read its stream have it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from actors.ingest.gateway_log import DoneCallback, GatewayLog, Origin
from actors.ingest.log_cache import CachedEntry, LogMessage
from dsms.net.wire import Data, End

if TYPE_CHECKING:
    from actors.ingest.log_reader import LogReader
    from dsms.live.routes import Routes

DELIVERY_LIMIT_ENTRIES = 1024  # of one delivery: the first of them is acknowledged with the last


@dataclass
class _Waiting:
    """A message that is not acknowledged yet."""

    readers: set[LogReader]  # that have not delivered it yet
    done: DoneCallback
    reason: str | None = None  # why one of them could not


class MemoryLog(GatewayLog):
    """Holds back messages of held streams before they get an offset; those of others flow on."""

    is_stored = False

    def __init__(self) -> None:
        super().__init__()
        self._entries: deque[CachedEntry] = deque()
        self._forgotten = 0  # the offset of the last entry that is no longer here
        self._waiting: dict[int, _Waiting] = {}  # by offset
        self._held_streams: set[str] = set()
        self._held: list[tuple[LogMessage, DoneCallback]] = []

    def append(self, message: LogMessage, done: DoneCallback, origin: Origin | None = None) -> None:
        """Add a message; it is done when its readers' schedulers have admitted it."""
        if message.stream in self._held_streams:
            self._held.append((message, done))
            return
        readers = {reader for reader in self.readers if message.stream in reader.reads}
        self.last += bool(readers)
        size = 0
        if isinstance(message, Data):
            self.rows[message.stream] += message.batch.rows
            size = int(message.batch.memory())
        elif isinstance(message, End):
            self.ended.setdefault(message.stream, self.last)
        if readers:
            self._waiting[self.last] = _Waiting(readers, done)
            self._entries.append(CachedEntry(self.last, message, size))
            self.notify()
        else:
            done(None)

    async def read(self, offset: int, size: int) -> Sequence[CachedEntry]:
        """Entries after an offset, up to a number of bytes."""
        start = max(0, offset - self._forgotten)
        entries: list[CachedEntry] = []
        for entry in islice(self._entries, start, start + DELIVERY_LIMIT_ENTRIES):
            entries.append(entry)
            size -= entry.size
            if size <= 0:
                break
        return entries

    def finish(self, reader: LogReader, after: int, reason: str | None, refused: Mapping[int, str]) -> None:
        """Complete the messages after an offset that no other reader has to deliver."""
        for offset in range(max(after, self._forgotten) + 1, reader.passed + 1):
            if (waiting := self._waiting.get(offset)) is not None and reader in waiting.readers:
                waiting.readers.discard(reader)
                waiting.reason = waiting.reason or reason or refused.get(offset)
                if not waiting.readers:
                    del self._waiting[offset]
                    waiting.done(waiting.reason)
        while self._entries and self._entries[0].offset not in self._waiting:
            self._forgotten = self._entries.popleft().offset
        self.notify()

    async def hold(self, streams: Iterable[str], align: bool) -> None:
        """Hold messages of these streams back; returns when all earlier messages are admitted."""
        self._held_streams.update(streams)
        earlier = self.last
        while any(reader.passed < earlier for reader in self.readers):
            await self.wait_for_change()

    def resume(self, routes: Routes) -> None:
        """Deliver held messages first."""
        held, self._held = self._held, []
        self._held_streams.clear()
        for message, done in held:
            self.append(message, done)
        self.notify()
