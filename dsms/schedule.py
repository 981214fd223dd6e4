"""The arrivals of all streams as one sequence: by instant, then by the streams' order in the plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import Arrivals
from dsms.errors import PlanError
from dsms.fates import name_hash
from dsms.plan import Stream

LOOK_AHEAD = 4096  # arrivals drawn at once
PUSHED = 1 << 40  # the first number of a tuple that comes from outside


@dataclass(frozen=True)
class Chunk:
    """A stretch of arrivals; the n-th of them is number first + n of all that are drawn."""

    first: int
    instants: list[float]
    streams: NDArray[np.int64]  # which stream each belongs to, by its place in the plan
    numbers: NDArray[np.int64]  # each one's number in its stream
    carries: Mapping[int, Mapping[str, NDArray[Any]]] = field(default_factory=dict)  # by stream: a column's value each

    def by_stream(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Of each stream that has some: its place, and the positions of its arrivals, in order."""
        order = np.argsort(self.streams, kind="stable")
        places, starts = np.unique(self.streams[order], return_index=True)
        return zip(places.tolist(), np.split(order, starts[1:]), strict=True)

    @classmethod
    def empty(cls) -> Chunk:
        none = np.empty(0, dtype=np.int64)
        return cls(0, [], none, none)


class Schedule:
    """Reads the arrival processes a chunk at a time, so that an endless stream costs no memory."""

    def __init__(self, streams: Sequence[Stream], seed: int, until: float | None) -> None:
        self._processes: list[Arrivals | None] = [
            stream.arrivals((seed + name_hash(stream.name)) % 2**63) if stream.arrivals and stream.consumers else None
            for stream in streams  # what nobody reads need not arrive
        ]
        live = [(s, p) for s, p in zip(streams, self._processes, strict=True) if p is not None]
        # `between` leaves its end out, while an arrival at `until` itself still counts.
        self._stop = max((p.end for _, p in live), default=0.0)
        if until is not None:
            self._stop = min(self._stop, math.nextafter(until, math.inf))
        if math.isinf(self._stop):
            endless = next(s.name for s, p in live if math.isinf(p.end))
            raise PlanError(f"stream {endless!r} never ends: give --until, `until` in [run], or a `count` of its own")
        self.sized = any("size" in p.carries for _, p in live)  # whether tuples of one stream differ in size
        # As far as is known; of streams that are pushed from outside nothing is.
        self.rates = [1.0 if process is None else process.rate for process in self._processes]
        # A pass over all streams should bring several arrivals of each.
        self._window = max(LOOK_AHEAD, 8 * len(live)) / max(sum(p.rate for _, p in live), 1e-300)
        self._read = 0.0
        self._seen = np.zeros(len(streams), dtype=np.int64)
        self._pushed = np.zeros(len(streams), dtype=np.int64)
        self._drawn = 0

    def chunk(self) -> Chunk | None:
        """The next arrivals, or None when there are no more."""
        window = self._window
        while self._read < self._stop:
            start, stop = self._read, min(self._read + window, self._stop)
            parts = [p.between(start, stop) if p is not None else np.empty(0) for p in self._processes]
            self._read = stop if stop > start else self._stop
            if any(len(part) for part in parts):
                return self._merge(parts)
            window *= 2  # a long silence
        return None

    def pushed(self, stream: int, instant: float, count: int) -> Chunk:
        """Arrivals from outside, at this instant; the stream's own go on being numbered as if there were none."""
        numbers = PUSHED + self._pushed[stream] + np.arange(count)
        chunk = Chunk(self._drawn, [instant] * count, np.full(count, stream), numbers)
        self._pushed[stream] += count
        self._drawn += count
        return chunk

    def _merge(self, parts: list[NDArray[np.float64]]) -> Chunk:
        instants = np.concatenate(parts)
        streams = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        numbers = np.concatenate([seen + np.arange(len(p)) for seen, p in zip(self._seen, parts, strict=True)])
        order = np.argsort(instants, kind="stable")  # equal instants stay in the order of the streams
        carries = {
            place: {n: c[self._seen[place] : self._seen[place] + len(parts[place])] for n, c in process.carries.items()}
            for place, process in enumerate(self._processes)
            if process is not None and process.carries
        }
        chunk = Chunk(self._drawn, instants[order].tolist(), streams[order], numbers[order], carries)
        self._seen += [len(part) for part in parts]
        self._drawn += len(instants)
        return chunk
