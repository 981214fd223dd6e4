"""Takes rows, watermarks and ends of streams from connections into the log, for the domains that read them."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace

import numpy as np

from actors.ingest.gateway_log import DoneCallback, GatewayLog, Origin
from actors.ingest.handles import SchedulerHandle
from actors.ingest.log_reader import LogReader
from actors.rpc.calls import BatchHost, Calls
from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.batch_ref import BatchRef
from dsms.data.schema import TIMESTAMP_LIMIT_US
from dsms.engine.watermarks import max_timestamp
from dsms.errors import existing
from dsms.live.routes import Routes, StreamRoute
from dsms.net.wire import Advance, Data, End

INLINE_LIMIT_BYTES = 32 * 1024  # a larger batch goes to its hosts past the scheduler


class Intake:
    """Checks messages and appends them to the log, which one `LogReader` for each scheduler delivers.

    Only the thread of the gateway's event loop uses it. `End` ends a stream for all producers: later rows are refused.
    Once all streams of a domain have ended, its scheduler is notified. All ends must be sent to the same gateway.
    """

    def __init__(self, name: str, calls: Calls, log: GatewayLog) -> None:
        self.name, self.calls, self.log = name, calls, log
        self.routes = Routes()
        self._prefix = f"{name}.{secrets.token_hex(4)}."  # an earlier process may have had the same name
        self._count = 0
        self._ended = set(log.ended)

    @property
    def is_full(self) -> bool:
        """Whether a limit is exceeded: clients are not read until `limits.on_room` is called."""
        return self.log.limits.is_full

    def serve(self, routes: Routes) -> None:
        """Deliver by these routes from now on, held messages first."""
        self.routes = routes
        before = {reader.scheduler: reader for reader in self.log.readers}
        kept = [before.get(scheduler) or LogReader(scheduler, self, self.log) for scheduler in routes.schedulers]
        for reader in kept:
            reader.set_reads(routes.streams_read_by(reader.scheduler))
        self.log.readers = kept
        for scheduler in before.keys() - set(routes.schedulers):
            before[scheduler].retire()
        self.log.resume(routes)

    async def halt(self) -> None:
        """Stop deliveries until the next `serve`."""
        readers, self.log.readers = self.log.readers, ()
        await asyncio.gather(*(reader.end() for reader in readers))

    def take(self, stream: str, batch: Batch, done: DoneCallback, origin: Origin) -> None:
        """Take rows of a stream; a batch without rows is done when all before it are."""
        size = batch.memory()
        self.log.limits.count_in_flight(size)

        def complete(reason: str | None) -> None:
            self.log.limits.count_in_flight(-size)
            done(reason)

        route = self._find_route(stream, complete)
        if route is None:
            return
        if batch.rows and (reason := self._refusal(stream, route, batch)) is not None:
            self.log.refuse(origin, reason, complete)
        else:
            self.log.append(Data(stream, origin[1], batch, route.schema), complete, origin)

    def advance(self, stream: str, upto: int, done: DoneCallback) -> None:
        """Take a stream's watermark."""
        if self._find_route(stream, done) is not None:
            self.log.append(Advance(stream, upto), done)

    def end(self, stream: str, done: DoneCallback) -> None:
        """End a stream."""

        def complete(reason: str | None) -> None:
            if reason is not None:
                self._ended.discard(stream)
            done(reason)

        if self._find_route(stream, done) is not None:
            self._ended.add(stream)
            self.log.append(End(stream), complete)

    def make_batch_ref(
        self, stream: str, batch: Batch, scheduler: SchedulerHandle
    ) -> tuple[tuple[BatchHost, ...], BatchRef, Batch]:
        """The hosts that get a batch for a scheduler, the reference for the scheduler, and the batch for the hosts.

        A small batch travels with its reference, so no host gets it.
        """
        route = self.routes.streams[stream]
        hosts = next(target.hosts for target in route.targets if target.scheduler == scheduler)
        due: float | None = None
        if isinstance(batch.arrived, np.ndarray):
            batch = replace(batch, arrived=batch.arrived - self.routes.epoch)
            due = float(batch.each("arrived").mean())
        self._count += 1
        latest = None if route.timestamp is None else max_timestamp(batch, route.timestamp)
        size = batch.memory()
        key, own = f"{self._prefix}{self._count}", batch if size <= INLINE_LIMIT_BYTES else None
        return hosts if own is None else (), BatchRef(key, batch.rows, size, latest, due, batch=own), batch

    def _refusal(self, stream: str, route: StreamRoute, batch: Batch) -> str | None:
        """Why rows are refused; None if they are taken."""
        if stream in self._ended:
            return f"rows for {stream!r} after its end"
        if route.timestamp is not None and (reason := find_bad_timestamp(batch, route.timestamp)) is not None:
            return f"rows for {stream!r}: {reason}"
        return None

    def _find_route(self, stream: str, done: DoneCallback) -> StreamRoute | None:
        route = self.routes.streams.get(stream)
        if route is None:
            done(f"no stream {stream!r}{existing(stream, self.routes.streams)}")
        return route


def find_bad_timestamp(batch: Batch, column: str) -> str | None:
    """What is wrong with the timestamps of rows, if anything: bad rows are refused here, before any operator."""
    ts, nulls = batch.columns[column], batch.columns.get(column + NULLS_SUFFIX)
    if nulls is not None and nulls.any():
        return f"the timestamp {column!r} of row {int(nulls.argmax())} is null"
    wrong = np.abs(ts) >= TIMESTAMP_LIMIT_US
    return f"the timestamp {column!r} is {ts[wrong.argmax()]}: out of range" if wrong.any() else None
