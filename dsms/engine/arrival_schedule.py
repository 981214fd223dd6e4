"""ArrivalSchedule: merges the arrivals of all streams into one sequence, by instant, then by stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import Arrivals
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.data.outcomes import hash_name
from dsms.errors import DsmsError, PlanError
from dsms.plan.graph import Plan, Stream

CHUNK_ARRIVALS = 4096  # arrivals drawn at once
FIRST_PUSHED_NUMBER = 1 << 40  # pushed tuples are numbered from here on


@dataclass(frozen=True)
class ArrivalChunk:
    """Consecutive arrivals; the n-th has the number `first` + n."""

    first: int
    instants: list[float]
    streams: NDArray[np.int64]  # by arrival: its stream's index in the plan
    numbers: NDArray[np.int64]  # by arrival: its number in its stream
    carries: Mapping[int, Mapping[str, NDArray[Any]]] = field(
        default_factory=dict
    )  # by stream: columns with a value for each arrival

    def by_stream(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each stream with arrivals: its index and their positions in the chunk, in order."""
        order = np.argsort(self.streams, kind="stable")
        places, starts = np.unique(self.streams[order], return_index=True)
        return zip(places.tolist(), np.split(order, starts[1:]), strict=True)

    @classmethod
    def empty(cls) -> ArrivalChunk:
        none = np.empty(0, dtype=np.int64)
        return cls(0, [], none, none)


def count_pushed(rows: object, stream: Stream) -> int:
    """Return the number of pushed rows or abstract tuples; refuse what the stream cannot take."""
    count = rows if isinstance(rows, int) else len(rows) if isinstance(rows, Batch | BatchRef) else -1
    if isinstance(rows, int) and stream.schema is not None:
        raise DsmsError(f"push of {rows!r} into {stream.name!r}: the stream has a schema; expected a Batch of rows")
    if isinstance(rows, bool) or count < 0:
        raise DsmsError(f"push of {rows!r} into {stream.name!r}: expected a Batch or a number of tuples")
    return count


class ArrivalSchedule:
    """Reads the arrival processes chunk by chunk, so that an endless stream needs no memory."""

    def __init__(self, streams: Sequence[Stream], seed: int, until: float | None) -> None:
        self._processes: list[Arrivals | None] = [
            stream.arrivals((seed + hash_name(stream.name)) % 2**63) if stream.arrivals and stream.consumers else None
            for stream in streams  # a stream without readers needs no arrivals
        ]
        live = [(s, p) for s, p in zip(streams, self._processes, strict=True) if p is not None]
        # `between` excludes its end, but an arrival at `until` itself counts.
        self._stop = max((p.end for _, p in live), default=0.0)
        if until is not None:
            self._stop = min(self._stop, math.nextafter(until, math.inf))
        if math.isinf(self._stop):
            endless = next(s.name for s, p in live if math.isinf(p.end))
            raise PlanError(f"stream {endless!r} never ends: give --until, `until` in [run], or a `count` of its own")
        self.sized = any("size" in p.carries for _, p in live)  # whether tuples of a stream differ in size
        # Of a stream that is pushed from outside the rate is not known.
        self.rates = [1.0 if process is None else process.rate for process in self._processes]
        # One window should contain several arrivals of each stream.
        self._window = max(CHUNK_ARRIVALS, 8 * len(live)) / max(sum(p.rate for _, p in live), 1e-300)
        self._read = 0.0
        self._seen = np.zeros(len(streams), dtype=np.int64)
        self._pushed = np.zeros(len(streams), dtype=np.int64)
        self._drawn = 0

    def chunk(self) -> ArrivalChunk | None:
        """Return the next arrivals; None: there are no more."""
        window = self._window
        while self._read < self._stop:
            start, stop = self._read, min(self._read + window, self._stop)
            parts = [p.between(start, stop) if p is not None else np.empty(0) for p in self._processes]
            self._read = stop if stop > start else self._stop
            if any(len(part) for part in parts):
                return self._merge(parts)
            window *= 2  # no arrivals in this window
        return None

    def number_pushed(self, stream: int, instant: float, count: int) -> ArrivalChunk:
        """Return a chunk of pushed arrivals at this instant; they do not change the numbers of the stream's own."""
        numbers = FIRST_PUSHED_NUMBER + self._pushed[stream] + np.arange(count)
        chunk = ArrivalChunk(self._drawn, [instant] * count, np.full(count, stream), numbers)
        self._pushed[stream] += count
        self._drawn += count
        return chunk

    def _merge(self, parts: list[NDArray[np.float64]]) -> ArrivalChunk:
        instants = np.concatenate(parts)
        streams = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        numbers = np.concatenate([seen + np.arange(len(p)) for seen, p in zip(self._seen, parts, strict=True)])
        order = np.argsort(instants, kind="stable")  # stable: equal instants stay in stream order
        carries = {
            place: {n: c[self._seen[place] : self._seen[place] + len(parts[place])] for n, c in process.carries.items()}
            for place, process in enumerate(self._processes)
            if process is not None and process.carries
        }
        chunk = ArrivalChunk(self._drawn, instants[order].tolist(), streams[order], numbers[order], carries)
        self._seen += [len(part) for part in parts]
        self._drawn += len(instants)
        return chunk


def schedule_arrivals(plan: Plan, until: float | None) -> ArrivalSchedule:
    """Return the arrivals of a plan up to an instant, by default the one that the plan names."""
    settings = plan.settings
    try:
        return ArrivalSchedule(plan.streams, settings.seed, settings.until if until is None else until)
    except PlanError as error:
        raise error.within("", plan.name) from None
