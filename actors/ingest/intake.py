"""Sends incoming rows from connections to the domains that read them; holds rows back while routes change."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from actors.ingest.dispatcher import Dispatcher, DispatchItem, DoneCallback
from actors.ingest.handles import SchedulerHandle
from actors.rpc.calls import Calls
from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.batch_ref import BatchRef
from dsms.data.schema import TIMESTAMP_LIMIT_US
from dsms.engine.watermarks import max_timestamp
from dsms.errors import existing
from dsms.live.routes import DomainRoute, Routes, StreamRoute
from dsms.storage import ProducerPosition

IN_FLIGHT_LIMIT_BYTES = 256 * 1024 * 1024  # of rows on their route to domains, of all clients together
Origin = tuple[str, int]  # the producer, and the sequence number of its frame


class Intake:
    """Sends each stream's messages to all domains that read it, in order.

    Only the thread of the gateway's event loop uses it. `End` ends a stream for all producers: later rows are refused.
    Once all streams of a domain have ended, its scheduler is notified. All ends must be sent to the same gateway.
    """

    def __init__(self, name: str, calls: Calls, most: int = IN_FLIGHT_LIMIT_BYTES) -> None:
        self.routes = Routes()
        self.rows: Counter[str] = Counter()  # by stream
        self.on_room: Callable[[], None] = lambda: None
        self._limit_bytes = most
        self._exceeded_limits: set[str] = set()  # names of limits that are exceeded
        self._bytes = 0.0  # in flight
        self._calls = calls
        self._prefix = f"{name}.{secrets.token_hex(4)}."  # an earlier process may have had the same name
        self._count = 0
        self._dispatchers: dict[SchedulerHandle, Dispatcher] = {}
        self._ended: set[str] = set()
        self._notified_schedulers: set[SchedulerHandle] = set()  # that all their streams have ended
        self._held_streams: set[str] = set()
        self._held_calls: list[Callable[[], None]] = []

    @property
    def is_full(self) -> bool:
        """Whether a limit is exceeded: clients are not read until `on_room` is called."""
        return bool(self._exceeded_limits)

    def producers(self) -> Mapping[str, ProducerPosition]:
        """The producers known from before this process started."""
        return {}

    def serve(self, routes: Routes) -> None:
        """Send by these routes from now on, held messages first."""
        self.routes = routes
        self._dispatchers = {
            scheduler: dispatcher for scheduler, dispatcher in self._dispatchers.items() if dispatcher.is_busy
        }
        for target in (target for route in routes.streams.values() for target in route.targets):
            self._dispatchers.setdefault(target.scheduler, Dispatcher(target.scheduler, self._calls))
        held, self._held_calls = self._held_calls, []
        self._held_streams.clear()
        for call in held:
            call()
        for target in self._take_finished_targets():  # streams of the new routes may have ended before
            self._dispatchers[target.scheduler].add(DispatchItem("", lambda reason: None, ends=True))

    async def hold(self, streams: Iterable[str], align: bool = True) -> None:
        """Hold messages of these streams back; returns when all earlier ones are admitted."""
        self._held_streams.update(streams)
        await asyncio.gather(*(dispatcher.drain() for dispatcher in self._dispatchers.values()))

    def take(self, stream: str, batch: Batch, done: DoneCallback, origin: Origin | None = None) -> None:
        """Take rows of a stream; a batch without rows is done when all before it are."""
        size = batch.memory()
        self._count_in_flight(size)

        def complete(reason: str | None) -> None:
            self._count_in_flight(-size)
            done(reason)

        self._take(stream, batch, complete, origin)

    def _count_in_flight(self, size: float) -> None:
        """Add to the bytes in flight, or subtract."""
        self._bytes += size
        self._apply_limit("in flight", self._bytes, self._limit_bytes)

    def _apply_limit(self, what: str, size: float, most: float) -> None:
        """Compare a number of bytes with its limit; once exceeded, there is room again at half of it."""
        if size > most:
            self._exceeded_limits.add(what)
        elif what in self._exceeded_limits and size <= most / 2:
            self._exceeded_limits.discard(what)
            if not self._exceeded_limits:
                self.on_room()

    def _take(self, stream: str, batch: Batch, done: DoneCallback, origin: Origin | None) -> None:
        if stream in self._held_streams:
            self._held_calls.append(partial(self._take, stream, batch, done, origin))
            return
        route = self._find_route(stream, done)
        if route is None:
            return
        if not batch.rows:
            self._dispatch(route, DispatchItem(stream, done))
            return
        if (reason := self._refusal(stream, route, batch)) is not None:
            done(reason)
            return
        self.rows[stream] += batch.rows
        batch_ref, batch = self._make_batch_ref(route, batch)
        self._dispatch(route, DispatchItem(stream, done, batch_ref, batch))

    def advance(self, stream: str, upto: int, done: DoneCallback) -> None:
        """Send a stream's watermark."""
        if stream in self._held_streams:
            self._held_calls.append(partial(self.advance, stream, upto, done))
        elif (route := self._find_route(stream, done)) is not None:
            self._dispatch(route, DispatchItem(stream, done, upto=upto))

    def end(self, stream: str, done: DoneCallback) -> None:
        """End a stream."""
        if stream in self._held_streams:
            self._held_calls.append(partial(self.end, stream, done))
        elif (route := self._find_route(stream, done)) is not None:
            self._ended.add(stream)
            self._dispatch(
                replace(route, targets=tuple(self._take_finished_targets())), DispatchItem(stream, done, ends=True)
            )

    def _refusal(self, stream: str, route: StreamRoute, batch: Batch) -> str | None:
        """Why rows are refused; None if they are taken."""
        if stream in self._ended:
            return f"rows for {stream!r} after its end"
        if route.timestamp is not None and (reason := find_bad_timestamp(batch, route.timestamp)) is not None:
            return f"rows for {stream!r}: {reason}"
        return None

    def _make_batch_ref(self, route: StreamRoute, batch: Batch) -> tuple[BatchRef, Batch]:
        """The reference for the scheduler, and the batch for the hosts."""
        due: float | None = None
        if isinstance(batch.arrived, np.ndarray):
            batch = replace(batch, arrived=batch.arrived - self.routes.epoch)
            due = float(batch.each("arrived").mean())
        self._count += 1
        latest = None if route.timestamp is None else max_timestamp(batch, route.timestamp)
        return BatchRef(f"{self._prefix}{self._count}", batch.rows, batch.memory(), latest, due), batch

    def _take_finished_targets(self) -> list[DomainRoute]:
        """The domains whose streams have all ended and that are not notified yet; the caller notifies them."""
        targets = {target.scheduler: target for route in self.routes.streams.values() for target in route.targets}
        over = [
            t
            for s, t in targets.items()
            if s not in self._notified_schedulers and self.routes.streams_read_by(s) <= self._ended
        ]
        self._notified_schedulers.update(target.scheduler for target in over)
        return over

    def _find_route(self, stream: str, done: DoneCallback) -> StreamRoute | None:
        route = self.routes.streams.get(stream)
        if route is None:
            done(f"no stream {stream!r}{existing(stream, self.routes.streams)}")
        return route

    def _dispatch(self, route: StreamRoute, item: DispatchItem) -> None:
        """Add an item to the dispatcher of every target; it is done when the last has answered."""
        left, reasons = len(route.targets), []

        def answered(reason: str | None) -> None:
            nonlocal left
            left -= 1
            if reason is not None:
                reasons.append(reason)
            if left <= 0:
                item.done(reasons[0] if reasons else None)

        if not route.targets:
            answered(None)
        for target in route.targets:
            self._dispatchers[target.scheduler].add(replace(item, hosts=target.hosts, done=answered))


def find_bad_timestamp(batch: Batch, column: str) -> str | None:
    """What is wrong with the timestamps of rows, if anything: bad rows are refused here, before any operator."""
    ts, nulls = batch.columns[column], batch.columns.get(column + NULLS_SUFFIX)
    if nulls is not None and nulls.any():
        return f"the timestamp {column!r} of row {int(nulls.argmax())} is null"
    wrong = np.abs(ts) >= TIMESTAMP_LIMIT_US
    return f"the timestamp {column!r} is {ts[wrong.argmax()]}: out of range" if wrong.any() else None
