"""Rows on their way from connections into a log, acknowledged there, and from it to the domains that read them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from actors.arrears import Arrears
from actors.calls import Calls
from actors.durable_lane import AGAIN, DurableLane
from actors.intake import Intake, Origin
from actors.lane import Done
from actors.tail import Kept, Said, Tail
from dsms.batch import Batch
from dsms.durable import Committed, Committer, Entry, Sole, SqliteLog, Standing
from dsms.errors import DsmsError
from dsms.live.routes import Routes
from dsms.live.terms import Terms
from dsms.parcel import Parcel
from dsms.wire import Advance, Data, Decoder, End, WireError, encoded

log = logging.getLogger("dsms")


class Waiting(NamedTuple):
    """What is being stored, and whoever wants to know when it is."""

    said: Said | None  # None: it is only to be known that it was refused
    size: int
    done: Done


class DurableIntake(Intake):
    """Stores what comes before it is acknowledged; lanes bring it from there to the schedulers.

    Belongs to the thread of a gateway's loop, as the other does; storing and reading the log have threads of their own.
    """

    def __init__(self, name: str, calls: Calls, path: Path, stored: int = Terms.stored) -> None:
        super().__init__(name, calls)
        self.name, self.calls = name, calls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sole = Sole(path.with_suffix(".lock"))
        self._log, self._reading = SqliteLog(path), SqliteLog(path)
        self._finished: dict[str, int] = dict(self._log.ended())
        self._ended = set(self._finished)
        self._tail = Tail(self._log.last())
        self._arrears, self._stored = Arrears(self._log.sizes()), stored
        self._reached = 0  # up to where all schedulers have the log, as far as is known
        self._reader = ThreadPoolExecutor(1, "log reader")
        self._committer: Committer[Waiting] = Committer(self._log, self._tell)
        self._brought: dict[Any, DurableLane] = {}  # by scheduler
        self._upto: int | None = None  # while nothing after this offset may be brought
        self._changed = asyncio.Event()

    def producers(self) -> Mapping[str, Standing]:
        """What the log knows of those who were here before."""
        return self._log.producers()

    def serve(self, routes: Routes) -> None:
        """Bring what is in the log by these routes from now on."""
        self._loop = asyncio.get_running_loop()
        self.routes, self._upto = routes, None
        for lane in self._brought.values():
            self._loop.create_task(lane.end())
        self._brought = {scheduler: DurableLane(scheduler, self) for scheduler in routes.schedulers}
        self.moved()

    async def hold(self, streams: Iterable[str], level: bool = True) -> None:
        """Bring nothing more for now; returns when nothing is on its way, and, where asked for, all have the same.

        Nobody is waited for to have all that is stored, nor to have room for what has been brought: it comes again.
        """
        lanes = list(self._brought.values())
        self._upto = 0
        while self._upto is not None and any(lane.position is None or lane.bringing for lane in lanes):
            await asyncio.gather(*(lane.take_back() for lane in lanes))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), AGAIN)
        if level and self._upto is not None:
            self._upto = max((lane.position or 0 for lane in lanes), default=0)
            self.moved()
            while self._upto is not None and any(lane.position != self._upto for lane in lanes):
                await self._changed.wait()

    async def halt(self) -> None:
        """Bring nothing more until it is told by what routes."""
        await asyncio.gather(*(lane.end() for lane in self._brought.values()))
        self._brought = {}

    def _take(self, stream: str, batch: Batch, done: Done, origin: Origin | None) -> None:
        way = self._way(stream, done)
        if way is None:
            return
        if origin is None:
            raise DsmsError("rows that nobody has numbered cannot be stored")
        producer, sequence = origin
        if batch.rows and (reason := self._refusal(stream, way, batch)) is not None:
            self._committer.add(Entry(producer, sequence, refused=reason), Waiting(None, 0, done))
            return
        self._store(Data(stream, sequence, batch, way.schema), done, producer, sequence)

    def advance(self, stream: str, upto: int, done: Done) -> None:
        """No older rows will come by a stream."""
        if self._way(stream, done) is not None:
            self._store(Advance(stream, upto), done)

    def end(self, stream: str, done: Done) -> None:
        """Nothing will come by a stream any more."""
        if self._way(stream, done) is not None:
            self._ended.add(stream)
            self._store(End(stream), done)

    def forget(self, upto: int) -> None:
        """Nobody can want the log up to this offset any more."""
        self._committer.forget(upto)
        self._arrears.forget(upto)

    def brake(self, on: bool) -> None:
        """Read nothing more while no checkpoint can be saved: results that none lets out would fill the memory."""
        self._limit("not saved", float(on), 0.5)

    async def after(self, offset: int, size: int) -> Sequence[Kept]:
        """What is in the log after an offset, once there is something that may be brought."""
        while offset >= (self._tail.last if self._upto is None else self._upto):
            await self._changed.wait()
        found = self._tail.after(offset, size)
        if found is None:
            found = await asyncio.get_running_loop().run_in_executor(self._reader, self._read, offset, size)
        allowed = found if self._upto is None else [one for one in found if one.offset <= self._upto]
        return allowed or await self.after(offset, size)

    def packed(self, stream: str, batch: Batch, scheduler: Any) -> tuple[tuple[Any, ...], Parcel, Batch]:
        """Rows for a scheduler: the hosts they go to, what it is told of them, and they themselves."""
        way = self.routes.streams[stream]
        hosts = next(target.hosts for target in way.targets if target.scheduler == scheduler)
        return hosts, *self._parcel(way, batch)

    def over(self, streams: Iterable[str], offset: int) -> bool:
        """Whether nothing comes by these streams after an offset."""
        return all(self._finished.get(stream, offset + 1) <= offset for stream in streams)

    def check(self, position: int) -> None:
        """Refuse to go on from beyond the end of the log: then it is not the one that was there."""
        if position > self._tail.last:
            raise DsmsError(
                f"the log {str(self._log.path)!r} ends at {self._tail.last}, and up to {position} of it was taken in: "
                "it is not the log that belongs to this checkpoint"
            )

    def moved(self) -> None:
        """Something has come about that others may wait for, or that lets clients be read again."""
        positions = [lane.position for lane in self._brought.values()]
        if known := [position for position in positions if position is not None]:
            self._reached = min(known) if len(known) == len(positions) else min(self._reached, *known)
        self._limit("stored", self._arrears.after(self._reached), self._stored)
        self._changed.set()
        self._changed = asyncio.Event()

    def positions(self) -> dict[str, Any]:
        """How far the log goes, and what keeps a scheduler from having all of it."""
        errors = [lane.error for lane in self._brought.values() if lane.error is not None]
        behind = [self._tail.last - lane.position for lane in self._brought.values() if lane.position is not None]
        return {
            "offset": self._tail.last,
            "behind": max(behind, default=0),
            "bytes": self._arrears.after(self._reached),
            "full": self.full,
            "error": next(iter(errors), None),
        }

    def close(self) -> None:
        """Store what waits, and end."""
        self._committer.close()
        self._reader.shutdown()
        self._log.close()
        self._reading.close()
        self._sole.close()

    def _store(self, said: Said, done: Done, producer: str = "", sequence: int | None = None) -> None:
        frame = b"".join(encoded(said))
        ends = said.stream if isinstance(said, End) else None
        self._committer.add(Entry(producer, sequence, frame, ends), Waiting(said, len(frame), done))

    def _tell(self, committed: Sequence[Committed[Waiting]]) -> None:
        """In the thread that stores: have the loop hear of it."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._committed, committed)

    def _committed(self, committed: Sequence[Committed[Waiting]]) -> None:
        for (said, size, done), offset, reason in committed:
            if isinstance(said, End) and reason is not None:
                self._ended.discard(said.stream)
            if offset is not None and said is not None:
                self._tail.add(Kept(offset, said, size))
                self._arrears.add(offset, size)
                if isinstance(said, Data):
                    self.rows[said.stream] += said.batch.rows
                elif isinstance(said, End):
                    self._finished.setdefault(said.stream, offset)
            done(reason)
        self.moved()

    def _read(self, offset: int, size: int) -> list[Kept]:
        """In a thread of its own: from the file."""
        found: list[Kept] = []
        decoder = Decoder({name: way.schema for name, way in self.routes.streams.items()})
        for place, frame in self._reading.read(offset, size):
            [said] = decoder.feed(frame)
            if isinstance(said, WireError):
                log.warning("entry %d of the log %s is passed over: %s", place, self._log.path, said)
            found.append(Kept(place, said if isinstance(said, Said) else None, len(frame)))
        return found
