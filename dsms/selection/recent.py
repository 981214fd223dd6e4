"""The arrivals of late: the pattern to expect more of, and how old the tuples are that still wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.observers import Observer

if TYPE_CHECKING:
    from dsms.engine import Engine

KEEP = 1 << 13  # arrivals remembered one by one
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Pattern(NamedTuple):
    """Arrivals in the order they came: columns of equal length."""

    instants: Floats
    streams: Numbers  # by place in the plan
    counts: Numbers  # tuples that came at once
    seq: Numbers  # number of the first of them

    def pick(self, index: NDArray[np.bool_]) -> Pattern:
        return Pattern(self.instants[index], self.streams[index], self.counts[index], self.seq[index])

    def last(self, stream: int, count: int, marks: int) -> Numbers | None:
        """So many numbers spread evenly over a stream's last `count` tuples; None where fewer are remembered."""
        mine = self.pick(self.streams == stream)
        ends = np.cumsum(mine.counts)
        if not count or not len(ends) or ends[-1] < count:
            return None
        wanted = ends[-1] - count + np.linspace(0, count - 1, marks).astype(np.int64)
        place = np.searchsorted(ends, wanted, side="right")
        return np.asarray(mine.seq[place] + wanted - (ends - mine.counts)[place], np.int64)


class Recent(Observer):
    """Remembers the last arrivals exactly and, of those before, as many as the ages of queued tuples need.

    Its memory is bounded: at most twice `keep` arrivals and as many marks of older ones, thinned out where a queue
    reaches back further. What arrived before it began to watch counts as having arrived then.
    """

    trusted = True

    def __init__(self, keep: int = KEEP) -> None:
        self.keep = keep

    def attach(self, engine: Engine) -> None:
        self._engine, self._ledger = engine, engine.ledger
        # Every arrival after `since` is remembered: also those of this very instant.
        self.since = math.nextafter(now := engine.clock.now(), -math.inf)
        self._first = engine.admitted  # number of the first that is remembered
        self._arrivals: list[tuple[float, int, int]] = []
        self._marks: tuple[Numbers, Floats] = np.array([self._first - 1]), np.array([now])
        self._newest = dict.fromkeys(range(len(engine.plan.streams)), self._first - 1)

    def arrive(self, now: float, stream: int, count: int) -> None:
        self._arrivals.append((now, stream, count))
        if len(self._arrivals) >= 2 * self.keep:
            self._forget()

    def pattern(self) -> Pattern:
        """All that is remembered one by one."""
        instants, streams, counts = zip(*self._arrivals, strict=True) if self._arrivals else ((), (), ())
        number = np.array(counts, np.int64)
        seq = self._first + np.cumsum(number) - number
        return Pattern(np.array(instants, np.float64), np.array(streams, np.int64), number, seq)

    def arrived(self, seq: Numbers) -> Floats:
        """When the tuples of these numbers arrived; of one that was thinned out, when the one kept before it did."""
        late, (numbers, instants) = self.pattern(), self._marks
        place = np.searchsorted(np.concatenate((numbers, late.seq)), seq, side="right") - 1
        found: Floats = np.concatenate((instants, late.instants))[np.maximum(place, 0)]
        return found

    def newest(self) -> list[int]:
        """Of each stream, the number of its last arrival."""
        last, late = dict(self._newest), self.pattern()
        last.update(zip(late.streams.tolist(), (late.seq + late.counts - 1).tolist(), strict=True))
        return list(last.values())

    def _forget(self) -> None:
        """Let the older half go, but for marks back to the oldest tuple that still waits."""
        late = self.pattern()
        old = np.arange(len(late.seq)) < self.keep
        self._newest = dict(enumerate(self.newest()))
        numbers = np.concatenate((self._marks[0], late.seq[old]))
        instants = np.concatenate((self._marks[1], late.instants[old]))
        oldest = min(queue.oldest for queue in self._ledger.queues)
        needed = slice(max(0, int(np.searchsorted(numbers, oldest, side="right")) - 1), None)
        numbers, instants = numbers[needed], instants[needed]
        if len(numbers) > self.keep:  # evenly, so that no stretch of the past is lost
            kept = np.unique(np.searchsorted(numbers, np.linspace(numbers[0], numbers[-1], self.keep)))
            numbers, instants = numbers[kept], instants[kept]
        self._marks = numbers, instants
        self._first, self.since = int(late.seq[self.keep]), float(late.instants[self.keep - 1])
        del self._arrivals[: self.keep]
