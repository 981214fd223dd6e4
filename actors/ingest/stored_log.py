"""A log on disk: a message is acknowledged when it is stored, and read by schedulers when they have room."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from actors.ingest.gateway_log import DoneCallback, GatewayLog, Origin
from actors.ingest.log_cache import CachedEntry, LogCache, LogMessage
from actors.ingest.log_lag import LogLag
from actors.ingest.log_reader import DELIVERY_RETRY_S
from actors.rpc.messages import JsonObject
from dsms.data.schema import Schema
from dsms.errors import DsmsError
from dsms.net.wire import Data, Decoder, End, WireError, encode
from dsms.storage import CommitResult, FileLock, GroupCommit, LogEntry, ProducerPosition, SqliteLog

if TYPE_CHECKING:
    from actors.ingest.log_reader import LogReader
    from dsms.live.routes import Routes

log = logging.getLogger("dsms")


class PendingWrite(NamedTuple):
    """A message that is being stored, and the callback for when it is."""

    message: LogMessage | None  # None: only the refusal of a frame is stored
    size: int
    done: DoneCallback


class StoredLog(GatewayLog):
    """A SQLite log with a cache of its end; writing and reading the file have threads of their own."""

    is_stored = True

    def __init__(self, path: Path, stored_limit: int) -> None:
        super().__init__()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._file_lock = FileLock(path.with_suffix(".lock"))
        self._file, self._reading = SqliteLog(path), SqliteLog(path)
        self.ended = dict(self._file.ended())
        self.last = self._file.last()
        self._schemas: dict[str, Schema] = {}
        self._cache = LogCache(self.last)
        self._lag, self._stored_limit = LogLag(self._file.sizes()), stored_limit
        self._min_position = 0  # all schedulers have the log up to here, as far as is known
        self._reader_thread = ThreadPoolExecutor(1, "log reader")
        self._committer: GroupCommit[PendingWrite] = GroupCommit(self._file, self._post_committed)
        self._hold_offset: int | None = None  # not None: nothing after this offset may be delivered

    def producers(self) -> Mapping[str, ProducerPosition]:
        """The producers that the log knows, with their positions."""
        return self._file.producers()

    def append(self, message: LogMessage, done: DoneCallback, origin: Origin | None = None) -> None:
        """Store a message; it is done when it is on disk."""
        frame = b"".join(encode(message))
        producer, sequence = origin or ("", None)
        ends = message.stream if isinstance(message, End) else None
        self._committer.add(LogEntry(producer, sequence, frame, ends), PendingWrite(message, len(frame), done))

    def refuse(self, origin: Origin, reason: str, done: DoneCallback) -> None:
        """Store that a frame is refused: the producer may send its number again, also to another process."""
        self._committer.add(LogEntry(*origin, refused=reason), PendingWrite(None, 0, done))

    async def read(self, offset: int, size: int) -> Sequence[CachedEntry]:
        """Entries after an offset that may be delivered now; older ones are read from the file."""
        if offset >= (self.last if self._hold_offset is None else self._hold_offset):
            return ()
        entries = self._cache.after(offset, size)
        if entries is None:
            entries = await asyncio.get_running_loop().run_in_executor(self._reader_thread, self._read, offset, size)
        return entries if self._hold_offset is None else [one for one in entries if one.offset <= self._hold_offset]

    def finish(self, reader: LogReader, after: int, reason: str | None, refused: Mapping[int, str]) -> None:
        """Resume reading clients if there is room: messages were acknowledged when they were stored."""
        self.notify()

    def notify(self) -> None:
        """Wake tasks that wait for progress; stop or resume reading clients by what is not delivered yet."""
        positions = [reader.position for reader in self.readers]
        if known := [position for position in positions if position is not None]:
            self._min_position = min(known) if len(known) == len(positions) else min(self._min_position, *known)
        self.limits.apply("stored", self._lag.after(self._min_position), self._stored_limit)
        super().notify()

    async def hold(self, streams: Iterable[str], align: bool) -> None:
        """Stop deliveries; returns when none is under way and, with `align`, all schedulers have the same offset.

        It does not wait for schedulers to have all of the log, nor for room: rejected deliveries come again.
        """
        readers = list(self.readers)
        self._hold_offset = 0
        while self._hold_offset is not None and any(
            reader.position is None or reader.is_delivering for reader in readers
        ):
            await asyncio.gather(*(reader.recall_delivery() for reader in readers))
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wait_for_change(), DELIVERY_RETRY_S)
        if align and self._hold_offset is not None:
            self._hold_offset = max((reader.position or 0 for reader in readers), default=0)
            self.notify()
            while self._hold_offset is not None and any(reader.position != self._hold_offset for reader in readers):
                await self.wait_for_change()

    def resume(self, routes: Routes) -> None:
        """Deliver the log by these routes."""
        self._loop, self._hold_offset = asyncio.get_running_loop(), None
        self._schemas = {name: route.schema for name, route in routes.streams.items()}
        self.notify()

    def check(self, position: int) -> None:
        """Raise an error for a position beyond the log's end: then the log belongs to another checkpoint."""
        if position > self.last:
            raise DsmsError(
                f"the log {str(self._file.path)!r} ends at {self.last}, but a domain has applied {position}: "
                "it is not the log that belongs to this checkpoint"
            )

    def truncate(self, upto: int) -> None:
        """Drop the log up to this offset: every kept checkpoint covers it."""
        self._committer.truncate(upto)
        self._lag.truncate(upto)

    def status(self) -> JsonObject:
        """The log's end, how far behind schedulers are, and why."""
        errors = [reader.error for reader in self.readers if reader.error is not None]
        behind = [self.last - reader.position for reader in self.readers if reader.position is not None]
        return {
            "offset": self.last,
            "behind": max(behind, default=0),
            "bytes": self._lag.after(self._min_position),
            "full": self.limits.is_full,
            "error": next(iter(errors), None),
        }

    def close(self) -> None:
        """Store what waits, and close the file."""
        self._committer.close()
        self._reader_thread.shutdown()
        self._file.close()
        self._reading.close()
        self._file_lock.close()

    def _post_committed(self, committed: Sequence[CommitResult[PendingWrite]]) -> None:
        """Called in the writing thread: pass the outcome to the event loop."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_committed, committed)

    def _on_committed(self, committed: Sequence[CommitResult[PendingWrite]]) -> None:
        for (message, size, done), offset, reason in committed:
            if offset is not None and message is not None:
                self._cache.add(CachedEntry(offset, message, size))
                self._lag.add(offset, size)
                self.last = offset
                if isinstance(message, Data):
                    self.rows[message.stream] += message.batch.rows
                elif isinstance(message, End):
                    self.ended.setdefault(message.stream, offset)
            done(reason)
        self.notify()

    def _read(self, offset: int, size: int) -> list[CachedEntry]:
        """Called in the reading thread: read entries from the file."""
        entries: list[CachedEntry] = []
        decoder = Decoder(self._schemas)
        for place, frame in self._reading.read(offset, size):
            [message] = decoder.feed(frame)
            if isinstance(message, WireError):
                log.warning("entry %d of the log %s is skipped: %s", place, self._file.path, message)
            entries.append(CachedEntry(place, message if isinstance(message, LogMessage) else None, len(frame)))
        return entries
