"""Stores incoming rows in the gateway's log before they are acknowledged, and has them read from there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from actors.ingest.dispatcher import DoneCallback
from actors.ingest.handles import DurableSchedulerHandle
from actors.ingest.intake import Intake, Origin
from actors.ingest.log_cache import CachedEntry, LogCache, LogMessage
from actors.ingest.log_lag import LogLag
from actors.ingest.log_reader import DELIVERY_RETRY_S, LogReader
from actors.rpc.calls import BatchHost, Calls
from actors.rpc.messages import JsonObject
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.errors import DsmsError
from dsms.live.routes import Routes
from dsms.net.access import AccessPolicy
from dsms.net.wire import Advance, Data, Decoder, End, WireError, encode
from dsms.storage import CommitResult, FileLock, GroupCommit, LogEntry, ProducerPosition, SqliteLog

log = logging.getLogger("dsms")


class PendingWrite(NamedTuple):
    """A message that is being stored, and the callback for when it is."""

    message: LogMessage | None  # None: only the refusal of a frame is stored
    size: int
    done: DoneCallback


class DurableIntake(Intake):
    """Stores messages before they are acknowledged; a `LogReader` for each scheduler delivers them.

    Only the thread of the gateway's event loop uses it; writing and reading the log have threads of their own.
    """

    def __init__(self, name: str, calls: Calls, path: Path, stored: int = AccessPolicy.stored) -> None:
        super().__init__(name, calls)
        self.name, self.calls = name, calls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._file_lock = FileLock(path.with_suffix(".lock"))
        self._log, self._reading = SqliteLog(path), SqliteLog(path)
        self._finished: dict[str, int] = dict(self._log.ended())
        self._ended = set(self._finished)
        self._cache = LogCache(self._log.last())
        self._lag, self._stored = LogLag(self._log.sizes()), stored
        self._min_position = 0  # all schedulers have the log up to here, as far as is known
        self._reader = ThreadPoolExecutor(1, "log reader")
        self._committer: GroupCommit[PendingWrite] = GroupCommit(self._log, self._post_committed)
        self._log_readers: dict[DurableSchedulerHandle, LogReader] = {}
        self._hold_offset: int | None = None  # not None: nothing after this offset may be delivered
        self._changed = asyncio.Event()

    def producers(self) -> Mapping[str, ProducerPosition]:
        """The producers that the log knows, with their positions."""
        return self._log.producers()

    def serve(self, routes: Routes) -> None:
        """Deliver the log by these routes from now on."""
        self._loop = asyncio.get_running_loop()
        self.routes, self._hold_offset = routes, None
        for log_reader in self._log_readers.values():
            self._loop.create_task(log_reader.end())
        self._log_readers = {scheduler: LogReader(scheduler, self) for scheduler in routes.schedulers}
        self.notify_progress()

    async def hold(self, streams: Iterable[str], align: bool = True) -> None:
        """Stop deliveries; returns when none is under way and, with `align`, all schedulers have the same offset.

        It does not wait for schedulers to have all of the log, nor for room: rejected deliveries come again.
        """
        log_readers = list(self._log_readers.values())
        self._hold_offset = 0
        while self._hold_offset is not None and any(
            log_reader.position is None or log_reader.is_delivering for log_reader in log_readers
        ):
            await asyncio.gather(*(log_reader.recall_delivery() for log_reader in log_readers))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), DELIVERY_RETRY_S)
        if align and self._hold_offset is not None:
            self._hold_offset = max((log_reader.position or 0 for log_reader in log_readers), default=0)
            self.notify_progress()
            while self._hold_offset is not None and any(
                log_reader.position != self._hold_offset for log_reader in log_readers
            ):
                await self._changed.wait()

    async def halt(self) -> None:
        """Stop deliveries until the next `serve`."""
        await asyncio.gather(*(log_reader.end() for log_reader in self._log_readers.values()))
        self._log_readers = {}

    def _take(self, stream: str, batch: Batch, done: DoneCallback, origin: Origin | None) -> None:
        route = self._find_route(stream, done)
        if route is None:
            return
        if origin is None:
            raise DsmsError("rows without a producer and a sequence number cannot be stored")
        producer, sequence = origin
        if batch.rows and (reason := self._refusal(stream, route, batch)) is not None:
            self._committer.add(LogEntry(producer, sequence, refused=reason), PendingWrite(None, 0, done))
            return
        self._store(Data(stream, sequence, batch, route.schema), done, producer, sequence)

    def advance(self, stream: str, upto: int, done: DoneCallback) -> None:
        """Store a stream's watermark."""
        if self._find_route(stream, done) is not None:
            self._store(Advance(stream, upto), done)

    def end(self, stream: str, done: DoneCallback) -> None:
        """Store the end of a stream."""
        if self._find_route(stream, done) is not None:
            self._ended.add(stream)
            self._store(End(stream), done)

    def truncate(self, upto: int) -> None:
        """Drop the log up to this offset: every kept checkpoint covers it."""
        self._committer.truncate(upto)
        self._lag.truncate(upto)

    def stop_ingest(self, on: bool) -> None:
        """Stop reading while no checkpoint can be saved: results that wait for one would fill the memory."""
        self._apply_limit("not saved", float(on), 0.5)

    async def after(self, offset: int, size: int) -> Sequence[CachedEntry]:
        """The log's entries after an offset; waits until there are some that may be delivered."""
        while offset >= (self._cache.last if self._hold_offset is None else self._hold_offset):
            await self._changed.wait()
        entries = self._cache.after(offset, size)
        if entries is None:
            entries = await asyncio.get_running_loop().run_in_executor(self._reader, self._read, offset, size)
        allowed = entries if self._hold_offset is None else [one for one in entries if one.offset <= self._hold_offset]
        return allowed or await self.after(offset, size)

    def make_batch_ref(
        self, stream: str, batch: Batch, scheduler: DurableSchedulerHandle
    ) -> tuple[tuple[BatchHost, ...], BatchRef, Batch]:
        """The hosts that get a batch for a scheduler, the reference for the scheduler, and the batch."""
        route = self.routes.streams[stream]
        hosts = next(target.hosts for target in route.targets if target.scheduler == scheduler)
        return hosts, *self._make_batch_ref(route, batch)

    def has_ended(self, streams: Iterable[str], offset: int) -> bool:
        """Whether these streams have ended at an offset."""
        return all(self._finished.get(stream, offset + 1) <= offset for stream in streams)

    def check(self, position: int) -> None:
        """Raise an error for a position beyond the log's end: then the log belongs to another checkpoint."""
        if position > self._cache.last:
            raise DsmsError(
                f"the log {str(self._log.path)!r} ends at {self._cache.last}, but a domain has applied {position}: "
                "it is not the log that belongs to this checkpoint"
            )

    def notify_progress(self) -> None:
        """Wake tasks that wait for progress of the log or its readers; resume reading clients if there is room."""
        positions = [log_reader.position for log_reader in self._log_readers.values()]
        if known := [position for position in positions if position is not None]:
            self._min_position = min(known) if len(known) == len(positions) else min(self._min_position, *known)
        self._apply_limit("stored", self._lag.after(self._min_position), self._stored)
        self._changed.set()
        self._changed = asyncio.Event()

    def positions(self) -> JsonObject:
        """The log's end, how far behind schedulers are, and why."""
        errors = [log_reader.error for log_reader in self._log_readers.values() if log_reader.error is not None]
        behind = [
            self._cache.last - log_reader.position
            for log_reader in self._log_readers.values()
            if log_reader.position is not None
        ]
        return {
            "offset": self._cache.last,
            "behind": max(behind, default=0),
            "bytes": self._lag.after(self._min_position),
            "full": self.is_full,
            "error": next(iter(errors), None),
        }

    def close(self) -> None:
        """Store what waits, and close the log."""
        self._committer.close()
        self._reader.shutdown()
        self._log.close()
        self._reading.close()
        self._file_lock.close()

    def _store(self, message: LogMessage, done: DoneCallback, producer: str = "", sequence: int | None = None) -> None:
        frame = b"".join(encode(message))
        ends = message.stream if isinstance(message, End) else None
        self._committer.add(LogEntry(producer, sequence, frame, ends), PendingWrite(message, len(frame), done))

    def _post_committed(self, committed: Sequence[CommitResult[PendingWrite]]) -> None:
        """Called in the writing thread: pass the outcome to the event loop."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_committed, committed)

    def _on_committed(self, committed: Sequence[CommitResult[PendingWrite]]) -> None:
        for (message, size, done), offset, reason in committed:
            if isinstance(message, End) and reason is not None:
                self._ended.discard(message.stream)
            if offset is not None and message is not None:
                self._cache.add(CachedEntry(offset, message, size))
                self._lag.add(offset, size)
                if isinstance(message, Data):
                    self.rows[message.stream] += message.batch.rows
                elif isinstance(message, End):
                    self._finished.setdefault(message.stream, offset)
            done(reason)
        self.notify_progress()

    def _read(self, offset: int, size: int) -> list[CachedEntry]:
        """Called in the reading thread: read entries from the file."""
        entries: list[CachedEntry] = []
        decoder = Decoder({name: route.schema for name, route in self.routes.streams.items()})
        for place, frame in self._reading.read(offset, size):
            [message] = decoder.feed(frame)
            if isinstance(message, WireError):
                log.warning("entry %d of the log %s is skipped: %s", place, self._log.path, message)
            entries.append(CachedEntry(place, message if isinstance(message, LogMessage) else None, len(frame)))
        return entries
