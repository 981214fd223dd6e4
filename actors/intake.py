"""Rows on their way from connections to the domains that read them, and what is held back while routes change."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from actors.calls import Calls
from actors.lane import Done, Item, Lane
from dsms.batch import NULLS, Batch
from dsms.durable import Standing
from dsms.errors import existing
from dsms.live.routes import Routes, Target, Way
from dsms.parcel import Parcel
from dsms.progress import highest
from dsms.schema import FARTHEST

BYTES = 256 * 1024 * 1024  # that may be on their way to domains, whoever sent them
Origin = tuple[str, int]  # the producer, and its number for a frame


class Intake:
    """Sends what comes by a stream to all its targets, in order; belongs to the thread of a gateway's loop.

    `End` is said of a stream for all who push into it: more rows of it are refused, and once all streams that a domain
    reads have ended, its scheduler is told so. With several gateways, all ends must be said at one of them.
    """

    def __init__(self, name: str, calls: Calls, most: int = BYTES) -> None:
        self.routes = Routes()
        self.rows: Counter[str] = Counter()  # by stream
        self.roomy: Callable[[], None] = lambda: None
        self._most = most
        self._excess: set[str] = set()  # of what there is more than should be
        self._bytes = 0.0  # on their way
        self._calls = calls
        self._prefix = f"{name}.{secrets.token_hex(4)}."  # one that was here before may have had the same name
        self._count = 0
        self._lanes: dict[Any, Lane] = {}  # by scheduler
        self._ended: set[str] = set()
        self._told: set[Any] = set()  # the schedulers that know that all they read has ended
        self._holding: set[str] = set()
        self._held: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        """Whether more is here than should be: nobody is read until `roomy` is called."""
        return bool(self._excess)

    def producers(self) -> Mapping[str, Standing]:
        """What is known of those who were here before this process was."""
        return {}

    def serve(self, routes: Routes) -> None:
        """Send by these routes from now on, first what was held."""
        self.routes = routes
        self._lanes = {scheduler: lane for scheduler, lane in self._lanes.items() if lane.busy}
        for target in (target for way in routes.streams.values() for target in way.targets):
            self._lanes.setdefault(target.scheduler, Lane(target.scheduler, self._calls))
        held, self._held = self._held, []
        self._holding.clear()
        for go in held:
            go()
        for target in self._over():  # what they read now may have ended before
            self._lanes[target.scheduler].add(Item("", lambda reason: None, ends=True))

    async def hold(self, streams: Iterable[str], level: bool = True) -> None:
        """Keep back what comes by these streams from now on; returns when all that came before is admitted."""
        self._holding.update(streams)
        await asyncio.gather(*(lane.settled() for lane in self._lanes.values()))

    def take(self, stream: str, batch: Batch, done: Done, origin: Origin | None = None) -> None:
        """Rows of a stream; without rows, a mark that is done when all before it is."""
        size = batch.memory()
        self._weigh(size)

        def arrived(reason: str | None) -> None:
            self._weigh(-size)
            done(reason)

        self._take(stream, batch, arrived, origin)

    def _weigh(self, size: float) -> None:
        """So many bytes more, or less, are on their way."""
        self._bytes += size
        self._limit("on its way", self._bytes, self._most)

    def _limit(self, what: str, size: float, most: float) -> None:
        """Of something there are so many bytes: where these are too many, there is room again at half of them."""
        if size > most:
            self._excess.add(what)
        elif what in self._excess and size <= most / 2:
            self._excess.discard(what)
            if not self._excess:
                self.roomy()

    def _take(self, stream: str, batch: Batch, done: Done, origin: Origin | None) -> None:
        if stream in self._holding:
            self._held.append(partial(self._take, stream, batch, done, origin))
            return
        way = self._way(stream, done)
        if way is None:
            return
        if not batch.rows:
            self._each(way, Item(stream, done))
            return
        if (reason := self._refusal(stream, way, batch)) is not None:
            done(reason)
            return
        self.rows[stream] += batch.rows
        parcel, batch = self._parcel(way, batch)
        self._each(way, Item(stream, done, parcel, batch))

    def advance(self, stream: str, upto: int, done: Done) -> None:
        """No older rows will come by a stream."""
        if stream in self._holding:
            self._held.append(partial(self.advance, stream, upto, done))
        elif (way := self._way(stream, done)) is not None:
            self._each(way, Item(stream, done, upto=upto))

    def end(self, stream: str, done: Done) -> None:
        """Nothing will come by a stream any more."""
        if stream in self._holding:
            self._held.append(partial(self.end, stream, done))
        elif (way := self._way(stream, done)) is not None:
            self._ended.add(stream)
            self._each(replace(way, targets=tuple(self._over())), Item(stream, done, ends=True))

    def _refusal(self, stream: str, way: Way, batch: Batch) -> str | None:
        """Why these rows are not taken, if so."""
        if stream in self._ended:
            return f"rows for {stream!r} after its end"
        if way.timestamp is not None and (reason := unsound(batch, way.timestamp)) is not None:
            return f"rows for {stream!r}: {reason}"
        return None

    def _parcel(self, way: Way, batch: Batch) -> tuple[Parcel, Batch]:
        """Rows as they go to hosts, and what the scheduler is told of them."""
        due: float | None = None
        if isinstance(batch.arrived, np.ndarray):
            batch = replace(batch, arrived=batch.arrived - self.routes.epoch)
            due = float(batch.each("arrived").mean())
        self._count += 1
        latest = None if way.timestamp is None else highest(batch, way.timestamp)
        return Parcel(f"{self._prefix}{self._count}", batch.rows, batch.memory(), latest, due), batch

    def _over(self) -> list[Target]:
        """Those all of whose streams have ended and who have not been told so; they are taken to be told now."""
        targets = {target.scheduler: target for way in self.routes.streams.values() for target in way.targets}
        over = [t for s, t in targets.items() if s not in self._told and self.routes.read_by(s) <= self._ended]
        self._told.update(target.scheduler for target in over)
        return over

    def _way(self, stream: str, done: Done) -> Way | None:
        way = self.routes.streams.get(stream)
        if way is None:
            done(f"no stream {stream!r}{existing(stream, self.routes.streams)}")
        return way

    def _each(self, way: Way, item: Item) -> None:
        """Add it to the lane of every target; done when the last has answered, at once where there is none."""
        left, reasons = len(way.targets), []

        def answered(reason: str | None) -> None:
            nonlocal left
            left -= 1
            if reason is not None:
                reasons.append(reason)
            if left <= 0:
                item.done(reasons[0] if reasons else None)

        if not way.targets:
            answered(None)
        for target in way.targets:
            self._lanes[target.scheduler].add(replace(item, hosts=target.hosts, done=answered))


def unsound(batch: Batch, column: str) -> str | None:
    """What is wrong with rows' timestamps, if anything: one bad row is refused here, not found out by an operator."""
    ts, nulls = batch.columns[column], batch.columns.get(column + NULLS)
    if nulls is not None and nulls.any():
        return f"the timestamp {column!r} of row {int(nulls.argmax())} is null"
    wrong = np.abs(ts) >= FARTHEST
    return f"the timestamp {column!r} is {ts[wrong.argmax()]}: out of range" if wrong.any() else None
