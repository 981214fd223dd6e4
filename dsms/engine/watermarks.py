"""Watermarks: how far event time has advanced on every stream, and which streams need a watermark without rows.

A join or union waits until no input can bring an older row. A stream stamped by arrival can bring nothing older than
now, so when it is silent the engine sends a watermark in its place (Bai and Zaniolo, section 4.1, ask for one on
demand). The watermark of a stream with its own timestamps follows from its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Batch
from dsms.data.batch_ref import BatchRef
from dsms.data.schema import TIMESTAMP_LIMIT_US, conform
from dsms.durations import MICROS_PER_S
from dsms.errors import DsmsError, PlanError, existing
from dsms.operators.instant_barrier import MIN_TIMESTAMP
from dsms.plan.graph import Plan, Station, Stream


class WatermarkState(NamedTuple):
    """The event time of some streams, for a migration or a checkpoint."""

    watermark: Mapping[str, int]  # by stream: no older rows will arrive
    latest: int  # the highest timestamp of all rows


class Watermarks:
    """The watermarks of one run's streams, by index in the plan."""

    def __init__(self, plan: Plan) -> None:
        self._streams, self._plan_name = plan.streams, plan.name
        self.places = {stream.name: place for place, stream in enumerate(plan.streams)}
        self._is_timed = [any(station.timed for station in stream.consumers) for stream in plan.streams]
        self._watermarks = [MIN_TIMESTAMP] * len(plan.streams)  # no older rows will arrive
        self._latest = MIN_TIMESTAMP  # the highest timestamp of all rows so far
        self._above = _find_clock_driven(plan)
        self._companions = self._find_companions(plan)
        self.clock_driven = frozenset(
            place for place, above in enumerate(self._above) if above
        )  # stations whose event time follows the clock
        self.ended = False

    def index_of(self, stream: str) -> int:
        """Return a stream's index in the plan."""
        if stream not in self.places:
            raise PlanError(f"no stream {stream!r}{existing(stream, self.places)}", file=self._plan_name)
        return self.places[stream]

    def stamp(self, place: int, batch: Batch | BatchRef, seq: int, now: float) -> Batch | BatchRef:
        """Return the rows with the timestamp, sequence number and watermark they get on entering the engine."""
        stream = self._streams[place]
        if self.ended:
            raise DsmsError(f"push into {stream.name!r} after `end()`: no stream takes rows after that")
        if stream.schema is not None and isinstance(batch, Batch):
            batch = conform(batch, stream.schema, stream.name)
        if stream.timestamp is not None:
            self._latest = max(self._latest, _max_timestamp_of(batch, stream.timestamp))
            return replace(batch, seq=seq, arrived=now)
        instant = max(int(now * MICROS_PER_S), self._watermarks[place])
        self._latest, self._watermarks[place] = max(self._latest, instant), instant + 1
        return replace(batch, seq=seq, arrived=now, ts=instant, watermark=instant + 1)

    def advance_silent_streams(self, place: int) -> Iterator[tuple[int, Batch]]:
        """Yield the streams that rows of this one would wait for in vain, each with a watermark to send."""
        for other in self._companions[place]:
            if self._watermarks[other] < self._watermarks[place]:
                self._watermarks[other] = self._watermarks[place]
                yield other, Batch(watermark=self._watermarks[other])

    def fire_deadline(self, station: int, deadline: int) -> Iterator[tuple[int, Batch]]:
        """Yield the streams, each with the watermark to send, for a station whose deadline has passed without rows."""
        for place in self._above[station]:
            self._watermarks[place] = max(self._watermarks[place], deadline + 1)
            yield place, Batch(watermark=self._watermarks[place])

    def advance_watermark(self, name: str, watermark: int) -> tuple[int, Batch] | None:
        """Set a stream's watermark; return what to send, if that advances it."""
        place = self.index_of(name)
        if not isinstance(watermark, int) or isinstance(watermark, bool):
            raise DsmsError(f"advance of {name!r} to {watermark!r}: expected a timestamp in whole microseconds")
        self._watermarks[place] = max(self._watermarks[place], watermark)
        return (place, Batch(watermark=watermark)) if self._is_timed[place] else None

    def end_all(self) -> Iterator[tuple[int, Batch]]:
        """Yield the final watermark of every stream: event time stops at the last row."""
        self.ended = True
        last = max(self._latest + 1, *self._watermarks)
        if last <= MIN_TIMESTAMP + 1:
            last = 1  # there were no rows
        for place, heard in enumerate(self._is_timed):
            if heard:
                yield place, Batch(watermark=last, ended=True)

    def snapshot(self, streams: Collection[str]) -> WatermarkState:
        """Return the event time of these streams."""
        return WatermarkState({name: self._watermarks[self.places[name]] for name in streams}, self._latest)

    def restore(self, snapshot: WatermarkState) -> None:
        """Continue from the event time of another process."""
        self._latest = max(self._latest, snapshot.latest)
        for name, place in self.places.items():
            self._watermarks[place] = max(self._watermarks[place], snapshot.watermark.get(name, MIN_TIMESTAMP))

    def _find_companions(self, plan: Plan) -> list[list[int]]:
        """Return, by stream, the other streams stamped by arrival that are merged with it at a station."""
        meetings = [
            set(above) for station, above in zip(plan.stations, self._above, strict=True) if len(station.inputs) > 1
        ]
        return [
            sorted({other for above in meetings if place in above for other in above} - {place})
            for place in range(len(plan.streams))
        ]


def _max_timestamp_of(batch: Batch | BatchRef, column: str) -> int:
    """Return the highest valid timestamp of the rows."""
    if isinstance(batch, BatchRef):
        return MIN_TIMESTAMP if batch.latest is None else batch.latest
    return max_timestamp(batch, column)


def max_timestamp(batch: Batch, column: str) -> int:
    """Return the highest valid timestamp in a column."""
    ts, nulls = batch.columns[column], batch.columns.get(column + NULLS_SUFFIX)
    sound = (
        (ts < TIMESTAMP_LIMIT_US) & (ts > -TIMESTAMP_LIMIT_US)
        if len(ts) and (ts.max() >= TIMESTAMP_LIMIT_US or ts.min() <= -TIMESTAMP_LIMIT_US)
        else None
    )
    if nulls is not None:
        sound = ~nulls if sound is None else sound & ~nulls
    return int((ts if sound is None else ts[sound]).max(initial=MIN_TIMESTAMP))


def _find_clock_driven(plan: Plan) -> list[list[int]]:
    """Return, by time-driven station, the streams upstream that are stamped by arrival."""
    places = {id(stream): place for place, stream in enumerate(plan.streams)}
    above: dict[int, set[int]] = {}
    for station in plan.stations:
        above[id(station)] = set().union(*(_streams_above(producer, places, above) for producer in station.inputs))
    return [sorted(above[id(station)]) if station.timed else [] for station in plan.stations]


def _streams_above(producer: Stream | Station, places: dict[int, int], above: dict[int, set[int]]) -> set[int]:
    if isinstance(producer, Station):
        return above[id(producer)]
    return {places[id(producer)]} if producer.timestamp is None else set()


def earliest_deadline_s(deadlines: dict[int, int]) -> float:
    """Return the earliest deadline as an instant of the clock."""
    return min(deadlines.values()) / MICROS_PER_S if deadlines else np.inf
