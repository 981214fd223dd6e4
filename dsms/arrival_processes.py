"""The arrival processes: from a window of time to the instants in it.

Every process can be read by any window of time in any order, also from another machine, and gives the same bits:
what is random in it is drawn by blocks, each from the seed and the number of the block alone.
"""

from __future__ import annotations

import itertools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dsms.arrival_table import Floats

BLOCK = 1024  # what is drawn at a time: few enough for a small window, enough for numpy to be worth it
HAIR = 1e-12  # relative widening of a window, far above rounding: better to read a tuple too many, then cut
COUNTS, INSTANTS, DURATIONS, ORDER = range(4)  # what a draw is for: each use of a seed has numbers of its own


def draw(seed: int, use: int, block: int) -> np.random.Generator:
    """The generator of one block, which depends on nothing drawn before."""
    return np.random.Generator(np.random.Philox(key=seed % 2**128, counter=[0, 0, block, use]))


class Arrivals(ABC):
    """The instants at which a stream's tuples arrive, the same however time is split into windows."""

    def __init__(self, rate: float, carries: Mapping[str, Floats] | None = None) -> None:
        self.rate = rate  # mean tuples per unit of time: a hint for how far a reader looks ahead
        self.carries = carries or {}  # columns by tuple number: "cost", "cost.<operator>", "size"
        self._start, self._count, self._until = 0.0, sys.maxsize, math.inf

    def limited(self, start: float, count: int, until: float) -> Arrivals:
        """The same process with its time origin at `start`, ending after `count` tuples or at `until`."""
        self._start, self._count, self._until = start, count, min(self._until, until)
        return self

    @cached_property
    def end(self) -> float:
        """No tuple arrives at or after this instant; infinity for an endless process."""
        if self._count == sys.maxsize:
            return self._until
        return min(self._until, math.nextafter(self._start + self._instant(self._count - 1), math.inf))

    def between(self, start: float, stop: float) -> Floats:
        """The instants in [start, stop), ascending."""
        stop = min(stop, self._until)
        # A count is cut by tuple number below: only a reader that may go beyond has to find out where it ends.
        if (stop - self._start) * self.rate >= self._count:
            stop = min(stop, self.end)
        if not start < stop:
            return np.empty(0)
        if stop == math.inf:
            raise ValueError(f"window [{start}, inf) of an endless stream; wanted a finite stop, 'count' or 'until'")
        hair = HAIR * max(abs(stop), abs(self._start))
        first, found = self._run(start - self._start - hair, stop - self._start + hair)
        found = self._start + found[: max(0, self._count - first)]
        low, high = np.searchsorted(found, (start, stop))
        return found[low:high]

    @abstractmethod
    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        """Consecutive tuples and the number of the first, with all those in [start, stop); origin and limits aside."""

    def _instant(self, number: int) -> float:
        """When the tuple of this number arrives, or infinity if it is beyond `until`; the origin aside."""
        step = 64 * BLOCK / self.rate
        for window in itertools.count():
            start, stop = window * step, (window + 1) * step
            if self._start + start >= self._until:
                break
            if self._run(stop, stop)[0] > number:
                first, found = self._run(start, stop)
                return float(found[number - first])
        return math.inf


class Listed(Arrivals):
    """Instants given one by one, in a plan or in a file; none at all for data that is pushed from outside."""

    def __init__(self, at: Floats, carries: Mapping[str, Floats], until: float = math.inf) -> None:
        at = at[: np.searchsorted(at, until)]
        span = float(at[-1] - at[0]) if len(at) else 0.0
        super().__init__(len(at) / span if span else max(1.0, len(at)), {k: v[: len(at)] for k, v in carries.items()})
        self._at = at
        self._until = math.nextafter(at[-1], math.inf) if len(at) else 0.0

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        low, high = np.searchsorted(self._at, (start, stop))
        return int(low), self._at[low:high]


class Constant(Arrivals):
    """One tuple every so much time, each instant a product so that no rounding adds up."""

    def __init__(self, every: float) -> None:
        super().__init__(1 / every)
        self._every = every

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first = int(max(0.0, start) / self._every)
        last = int(max(0.0, stop) / self._every) + 1
        return first, np.arange(first, last + 1, dtype=np.float64) * self._every


class Poisson(Arrivals):
    """Independent arrivals: each slice of time has a Poisson number of them, spread uniformly."""

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__(rate)
        self._seed = seed
        # Slices rather than sums of gaps: a reader of a late one draws the counts before it, but no instants.
        self.slice_length = BLOCK / rate
        self._before = np.zeros(1, dtype=np.int64)  # tuples before each slice
        self._recent: tuple[range, Floats] = (range(0), np.empty(0))

    def slices(self, start: float, stop: float) -> range:
        """The slices that have all the tuples in [start, stop)."""
        first = int(max(0.0, start) / self.slice_length * (1 - HAIR))
        return range(first, int(max(0.0, stop) / self.slice_length * (1 + HAIR)) + 1)

    def count_before(self, index: int) -> int:
        """How many tuples the slices before this one have."""
        while len(self._before) <= index:
            counts = draw(self._seed, COUNTS, len(self._before) // BLOCK).poisson(BLOCK, BLOCK)
            self._before = np.concatenate((self._before, self._before[-1] + np.cumsum(counts)))
        return int(self._before[index])

    def instants(self, slices: range) -> Floats:
        """The tuples of consecutive slices; the last answer is kept for small windows that follow each other."""
        if slices != self._recent[0]:
            self._recent = slices, np.concatenate([self._slice(index) for index in slices])
        return self._recent[1]

    def _slice(self, index: int) -> Floats:
        number = self.count_before(index + 1) - self.count_before(index)
        spread: Floats = np.sort(draw(self._seed, INSTANTS, index).random(number))
        return index * self.slice_length + spread * self.slice_length

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        slices = self.slices(start, stop)
        return self.count_before(slices.start), self.instants(slices)


class Bursts(Poisson):
    """A Poisson stream of which every so many consecutive tuples arrive with the first of them (G12)."""

    def __init__(self, rate: float, group: int, seed: int) -> None:
        super().__init__(rate, seed)
        self._group = group

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first, found = super()._run(start, stop)
        skipped = -first % self._group
        return first + skipped, np.repeat(found[skipped :: self._group], self._group)


class Piecewise(Arrivals):
    """A Poisson stream whose rate changes at regular times (J14): one of unit rate, its time stretched."""

    def __init__(self, rates: Floats, every: float, shuffled: bool, seed: int) -> None:
        super().__init__(float(np.mean(rates)))
        self._choices, self._every, self._shuffled, self._seed = rates, every, shuffled, seed
        self._unit = Poisson(1.0, seed)
        self._rates = np.empty(0)  # of each interval
        self._sums = np.zeros(1)  # tuples expected before each interval

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        low = self._expected(max(0.0, start)) * (1 - HAIR)
        high = min(self._expected(max(0.0, stop)) * (1 + HAIR), float(self._sums[-1]))
        first, unit = self._unit._run(low, high)
        skipped, end = np.searchsorted(unit, (low, high))
        unit = unit[skipped:end]
        interval = np.searchsorted(self._sums, unit, side="right") - 1
        found = interval * self._every + (unit - self._sums[interval]) / self._rates[interval]
        # Rounding must not carry a tuple over the first ones of the next interval.
        return first + int(skipped), np.minimum(found, (interval + 1) * self._every)

    def _expected(self, instant: float) -> float:
        """How many tuples are expected before an instant."""
        interval = int(instant / self._every)
        while len(self._rates) < interval + 2:
            chunk = len(self._rates) // BLOCK
            picks = np.arange(chunk * BLOCK, (chunk + 1) * BLOCK) % len(self._choices)
            if self._shuffled:
                picks = draw(self._seed, ORDER, chunk).integers(len(self._choices), size=BLOCK)
            rates = self._choices[picks]
            self._rates = np.concatenate((self._rates, rates))
            self._sums = np.concatenate((self._sums, self._sums[-1] + np.cumsum(rates * self._every)))
        within = max(0.0, instant - interval * self._every)
        return float(self._sums[interval] + within * self._rates[interval])


class Flows(NamedTuple):
    """The flows of the slices before `upto` that may still send in it, and what the others have sent."""

    upto: int
    sent: int
    began: Floats
    packets: Floats


class Pareto(Arrivals):
    """Flows that begin as a Poisson stream, each sending packets evenly for a Pareto-distributed time (J13)."""

    def __init__(self, flows: float, packets: float, alpha: float, shortest: float, seed: int) -> None:
        super().__init__(flows * mean_packets(shortest * packets, alpha))
        self._packets, self._alpha, self._shortest, self._seed = packets, alpha, shortest, seed
        self._begins = Poisson(flows, seed)
        self._old = self._none = Flows(0, 0, np.empty(0), np.empty(0))
        self._recent = range(0), self._none

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        slices = self._begins.slices(start, stop)
        if slices != self._recent[0]:
            self._recent = slices, self._joined(self._sending(slices.start), slices)
        flows = self._recent[1]
        early = np.clip(np.floor((start - flows.began) * self._packets), 0, flows.packets)
        # One packet more than needed at either end, since a product may be rounded down; the cut below is exact.
        late = np.clip(np.floor((stop - flows.began) * self._packets) + 2, 0, flows.packets)
        numbers = (late - early).astype(np.int64)
        within = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers - early, numbers)
        found = np.sort(np.repeat(flows.began, numbers) + within / self._packets)
        low, high = np.searchsorted(found, (start, stop))
        return flows.sent + int(early.sum()) + int(low), found[low:high]

    def _sending(self, index: int) -> Flows:
        """The flows from before a slice that send in it; only those are kept, so that old ones cost nothing."""
        if index < self._old.upto:
            self._old = self._none
        while self._old.upto < index:
            step = range(self._old.upto, min(index, self._old.upto + 64))
            flows = self._joined(self._old, step)
            last = flows.began + (flows.packets - 1) / self._packets
            keep = last >= flows.upto * self._begins.slice_length
            sent = flows.sent + int(flows.packets[~keep].sum())
            self._old = Flows(flows.upto, sent, flows.began[keep], flows.packets[keep])
        return self._old

    def _joined(self, old: Flows, slices: range) -> Flows:
        """Old flows and those that begin in the slices after."""
        began = self._begins.instants(slices)
        numbers = np.diff([self._begins.count_before(index) for index in (*slices, slices.stop)]).tolist()
        drawn = [draw(self._seed, DURATIONS, i).pareto(self._alpha, n) for i, n in zip(slices, numbers, strict=True)]
        packets = np.ceil((1 + np.concatenate(drawn)) * self._shortest * self._packets)
        joined = np.concatenate((old.began, began)), np.concatenate((old.packets, packets))
        return Flows(slices.stop, old.sent, *joined)


def mean_packets(least: float, alpha: float) -> float:
    """The mean of a Pareto variable rounded up: the sum over n of the chance that it is greater than n."""
    sure = math.ceil(least)
    end = sure + BLOCK
    chances = np.sum((least / np.arange(sure, end)) ** alpha)
    rest = (least / end) ** alpha * (end / (alpha - 1) + 0.5)  # the sum's tail as an integral
    return float(sure + chances + rest)
