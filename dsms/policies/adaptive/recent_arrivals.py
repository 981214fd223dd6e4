"""RecentArrivals: remembers the last arrivals, to predict the next ones and to find when queued tuples arrived."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.engine.engine import Engine
from dsms.engine.observers import Observer

REMEMBERED_ARRIVALS = 1 << 13  # remembered one by one
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class ArrivalPattern(NamedTuple):
    """Arrivals in order: columns of equal length."""

    instants: Floats
    streams: Numbers  # by index in the plan
    counts: Numbers  # tuples in the arrival
    seq: Numbers  # sequence number of its first tuple

    def pick(self, index: NDArray[np.bool_]) -> ArrivalPattern:
        return ArrivalPattern(self.instants[index], self.streams[index], self.counts[index], self.seq[index])

    def last(self, stream: int, count: int, marks: int) -> Numbers | None:
        """Return sequence numbers spread evenly over a stream's last `count` tuples; None: fewer are remembered."""
        mine = self.pick(self.streams == stream)
        ends = np.cumsum(mine.counts)
        if not count or not len(ends) or ends[-1] < count:
            return None
        numbers = ends[-1] - count + np.linspace(0, count - 1, marks).astype(np.int64)
        place = np.searchsorted(ends, numbers, side="right")
        return np.asarray(mine.seq[place] + numbers - (ends - mine.counts)[place], np.int64)


class RecentArrivals(Observer):
    """Remembers the last arrivals exactly, and of earlier ones enough to date queued tuples.

    Its memory is bounded: at most twice `keep` arrivals and as many marks of older ones, thinned out where a queue
    reaches back further. What arrived before it began to watch counts as having arrived then.
    """

    trusted = True

    def __init__(self, keep: int = REMEMBERED_ARRIVALS) -> None:
        self.keep = keep

    def attach(self, engine: Engine) -> None:
        self._engine, self._ledger = engine, engine.ledger
        # Every arrival after `since` is remembered, and those at this instant.
        self.since = math.nextafter(now := engine.clock.now(), -math.inf)
        self._first = engine.admitted  # sequence number of the first remembered tuple
        self._arrivals: list[tuple[float, int, int]] = []
        self._marks: tuple[Numbers, Floats] = np.array([self._first - 1]), np.array([now])
        self._newest = dict.fromkeys(range(len(engine.plan.streams)), self._first - 1)

    def arrive(self, now: float, stream: int, count: int) -> None:
        self._arrivals.append((now, stream, count))
        if len(self._arrivals) >= 2 * self.keep:
            self._forget()

    def pattern(self) -> ArrivalPattern:
        """Return the arrivals that are remembered one by one."""
        instants, streams, counts = zip(*self._arrivals, strict=True) if self._arrivals else ((), (), ())
        number = np.array(counts, np.int64)
        seq = self._first + np.cumsum(number) - number
        return ArrivalPattern(np.array(instants, np.float64), np.array(streams, np.int64), number, seq)

    def arrived(self, seq: Numbers) -> Floats:
        """Return when the tuples of these numbers arrived; for a forgotten one, the arrival before it."""
        late, (numbers, instants) = self.pattern(), self._marks
        place = np.searchsorted(np.concatenate((numbers, late.seq)), seq, side="right") - 1
        found: Floats = np.concatenate((instants, late.instants))[np.maximum(place, 0)]
        return found

    def newest(self) -> list[int]:
        """Return the number of each stream's last arrival."""
        last, late = dict(self._newest), self.pattern()
        last.update(zip(late.streams.tolist(), (late.seq + late.counts - 1).tolist(), strict=True))
        return list(last.values())

    def _forget(self) -> None:
        """Forget the older half, except for marks back to the oldest queued tuple."""
        late = self.pattern()
        old = np.arange(len(late.seq)) < self.keep
        self._newest = dict(enumerate(self.newest()))
        numbers = np.concatenate((self._marks[0], late.seq[old]))
        instants = np.concatenate((self._marks[1], late.instants[old]))
        oldest = min(queue.oldest for queue in self._ledger.queues)
        needed = slice(max(0, int(np.searchsorted(numbers, oldest, side="right")) - 1), None)
        numbers, instants = numbers[needed], instants[needed]
        if len(numbers) > self.keep:  # thin out evenly over the past
            kept = np.unique(np.searchsorted(numbers, np.linspace(numbers[0], numbers[-1], self.keep)))
            numbers, instants = numbers[kept], instants[kept]
        self._marks = numbers, instants
        self._first, self.since = int(late.seq[self.keep]), float(late.instants[self.keep - 1])
        del self._arrivals[: self.keep]
