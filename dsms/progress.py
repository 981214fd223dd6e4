"""How far time has come on every stream: timestamps by arrival, and whom to tell when there are no rows to do so.

A join or a union waits until no input can bring anything older. A stream whose timestamps are those of arrival can
bring nothing older than now, so its silence is no reason to wait: it is told in its place (Bai and Zaniolo, section
4.1, ask for it on demand). A stream with timestamps of its own is as far as its rows say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dsms.batch import NULLS, Batch
from dsms.errors import DsmsError
from dsms.operators.pending import BEGINNING
from dsms.parcel import Parcel
from dsms.plan import Plan, Station, Stream
from dsms.schema import FARTHEST, conformed

MICROS = 1_000_000


class Reached(NamedTuple):
    """How far some streams have come."""

    upto: Mapping[str, int]  # by stream: nothing older comes any more
    latest: int  # timestamp of all rows


class Progress:
    """The streams of one run, by their places in the plan."""

    def __init__(self, plan: Plan) -> None:
        self._streams = plan.streams
        self.places = {stream.name: place for place, stream in enumerate(plan.streams)}
        self._heard = [any(station.timed for station in stream.consumers) for stream in plan.streams]
        self._upto = [BEGINNING] * len(plan.streams)  # nothing older than this comes any more
        self._latest = BEGINNING  # the timestamp of any row so far that no other exceeds
        self._above = _clocked(plan)
        self._companions = self._met(plan)
        self.clocked = frozenset(place for place, above in enumerate(self._above) if above)  # stations, by the clock
        self.ended = False

    def stamped(self, place: int, batch: Batch | Parcel, seq: int, now: float) -> Batch | Parcel:
        """Rows as they enter the system at this instant: with timestamps, unless those are in a column."""
        stream = self._streams[place]
        if self.ended:
            raise DsmsError(f"push into {stream.name!r} after the end: all streams were said to have ended")
        if stream.schema is not None and isinstance(batch, Batch):
            batch = conformed(batch, stream.schema, stream.name)
        if stream.timestamp is not None:
            self._latest = max(self._latest, _highest(batch, stream.timestamp))
            return replace(batch, seq=seq, arrived=now)
        instant = max(int(now * MICROS), self._upto[place])
        self._latest, self._upto[place] = max(self._latest, instant), instant + 1
        return replace(batch, seq=seq, arrived=now, ts=instant, upto=instant + 1)

    def silent(self, place: int) -> Iterator[tuple[int, Batch]]:
        """The streams that somebody would wait for in vain when rows have come by this one, and what to tell them."""
        for other in self._companions[place]:
            if self._upto[other] < self._upto[place]:
                self._upto[other] = self._upto[place]
                yield other, Batch(upto=self._upto[other])

    def rung(self, station: int, deadline: int) -> Iterator[tuple[int, Batch]]:
        """What to tell which streams when a station's deadline has passed and no rows have said so."""
        for place in self._above[station]:
            self._upto[place] = max(self._upto[place], deadline + 1)
            yield place, Batch(upto=self._upto[place])

    def told(self, name: str, upto: int) -> tuple[int, Batch] | None:
        """From outside: no older rows will come by this stream."""
        place = self.places[name]
        self._upto[place] = max(self._upto[place], upto)
        return (place, Batch(upto=upto)) if self._heard[place] else None

    def over(self) -> Iterator[tuple[int, Batch]]:
        """What to tell the streams when all of them have ended: time stops at the last of all rows."""
        self.ended = True
        last = max(self._latest + 1, *self._upto)
        if last <= BEGINNING + 1:
            last = 1  # nothing ever came
        for place, heard in enumerate(self._heard):
            if heard:
                yield place, Batch(upto=last, ended=True)

    def reached(self, streams: Collection[str]) -> Reached:
        """How far these streams have come."""
        return Reached({name: self._upto[self.places[name]] for name in streams}, self._latest)

    def resume(self, reached: Reached) -> None:
        """Streams have come as far as this elsewhere: here they go on from there."""
        self._latest = max(self._latest, reached.latest)
        for name, place in self.places.items():
            self._upto[place] = max(self._upto[place], reached.upto.get(name, BEGINNING))

    def _met(self, plan: Plan) -> list[list[int]]:
        """By stream: the others, if by arrival, that meet it at some station with several inputs."""
        meetings = [
            set(above) for station, above in zip(plan.stations, self._above, strict=True) if len(station.inputs) > 1
        ]
        return [
            sorted({other for above in meetings if place in above for other in above} - {place})
            for place in range(len(plan.streams))
        ]


def _highest(batch: Batch | Parcel, column: str) -> int:
    """The latest timestamp there is; what is none, or out of range, does not count."""
    if isinstance(batch, Parcel):
        return BEGINNING if batch.latest is None else batch.latest
    return highest(batch, column)


def highest(batch: Batch, column: str) -> int:
    """The latest timestamp in a column; what is none, or out of range, does not count."""
    ts, nulls = batch.columns[column], batch.columns.get(column + NULLS)
    sound = (ts < FARTHEST) & (ts > -FARTHEST) if len(ts) and (ts.max() >= FARTHEST or ts.min() <= -FARTHEST) else None
    if nulls is not None:
        sound = ~nulls if sound is None else sound & ~nulls
    return int((ts if sound is None else ts[sound]).max(initial=BEGINNING))


def _clocked(plan: Plan) -> list[list[int]]:
    """By station: the streams above it whose timestamps are those of arrival, if time matters to it."""
    places = {id(stream): place for place, stream in enumerate(plan.streams)}
    above: dict[int, set[int]] = {}
    for station in plan.stations:
        above[id(station)] = set().union(*(_of(producer, places, above) for producer in station.inputs))
    return [sorted(above[id(station)]) if station.timed else [] for station in plan.stations]


def _of(producer: Stream | Station, places: dict[int, int], above: dict[int, set[int]]) -> set[int]:
    if isinstance(producer, Station):
        return above[id(producer)]
    return {places[id(producer)]} if producer.timestamp is None else set()


def earliest(deadlines: dict[int, int]) -> float:
    """The first of some deadlines as an instant of the clock."""
    return min(deadlines.values()) / MICROS if deadlines else np.inf
