"""Arrivals: the base of all arrival processes; returns the instants in a window of time.

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

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAW_BLOCK_TUPLES = 1024  # drawn at a time: a compromise between small windows and vectorisation
WINDOW_TOLERANCE = 1e-12  # relative widening of a window against rounding; extra tuples are cut afterwards
COUNTS, INSTANTS, DURATIONS, ORDER, BEGINNING = range(5)  # purpose of a draw: each has its own random numbers


def block_generator(seed: int, use: int, block: int) -> np.random.Generator:
    """Return the random generator of one block, independent of earlier draws."""
    return np.random.Generator(np.random.Philox(key=seed % 2**128, counter=[0, 0, block, use]))


class Arrivals(ABC):
    """The instants at which a stream's tuples arrive, the same for every split of time into windows."""

    def __init__(self, rate: float, carries: Mapping[str, Floats] | None = None) -> None:
        self.rate = rate  # mean tuples per unit of time, a hint for readers
        self.carries = carries or {}  # columns by tuple number: "cost", "cost.<operator>", "size"
        self._start, self._count, self._until = 0.0, sys.maxsize, math.inf

    def limited(self, start: float, count: int, until: float) -> Arrivals:
        """Return the process with its time origin at `start`, ending after `count` tuples or at `until`."""
        self._start, self._count, self._until = start, min(self._count, count), min(self._until, until)
        return self

    def scaled(self, factor: float) -> Arrivals:
        """Return the same tuples with every instant divided by `factor`: `factor` times the rate.

        What limits the process is in its own time: `start` and `until` are divided too, `count` stays.
        """
        if not (math.isfinite(factor) and factor > 0):
            raise ValueError(f"a factor of {factor}; expected a finite number above 0")
        return ScaledArrivals(self, factor)

    @cached_property
    def end(self) -> float:
        """The end: no tuple arrives at or after it; infinity for an endless process."""
        if self._count == sys.maxsize:
            return self._until
        return min(self._until, math.nextafter(self._start + self._instant(self._count - 1), math.inf))

    def between(self, start: float, stop: float) -> Floats:
        """Return the instants in [start, stop), ascending."""
        return self.numbered(start, stop)[1] if start < stop else np.empty(0)

    def numbered(self, start: float, stop: float) -> tuple[int, Floats]:
        """Return the number of tuples before `start`, and the instants in [start, stop)."""
        stop = min(stop, self._until)
        # A count is cut by tuple number below: only a reader that may go beyond has to find out where it ends.
        if stop == math.inf or (stop - self._start) * self.rate >= self._count:
            stop = min(stop, self.end)
        if stop == math.inf:
            raise ValueError(f"window [{start}, inf) of an endless stream; expected a finite stop, 'count' or 'until'")
        start = min(start, stop)
        hair = WINDOW_TOLERANCE * max(abs(stop), abs(self._start))
        first, found = self._run(start - self._start - hair, stop - self._start + hair)
        found = self._start + found[: max(0, self._count - first)]
        low, high = np.searchsorted(found, (start, stop)).tolist()
        return min(first + low, self._count), found[low:high]

    @abstractmethod
    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        """Consecutive tuples and the number of the first, with all those in [start, stop); origin and limits aside."""

    def _instant(self, number: int) -> float:
        """When the tuple of this number arrives, or infinity if it is beyond `until`; the origin aside."""
        step = 64 * DRAW_BLOCK_TUPLES / self.rate
        for window in itertools.count():
            start, stop = window * step, (window + 1) * step
            if self._start + start >= self._until:
                break
            if self._run(stop, stop)[0] > number:
                first, found = self._run(start, stop)
                return float(found[number - first])
        return math.inf


class ScaledArrivals(Arrivals):
    """Another process with its time compressed."""

    def __init__(self, process: Arrivals, factor: float) -> None:
        super().__init__(process.rate * factor, process.carries)
        self.process, self.factor = process, factor

    @cached_property
    def end(self) -> float:
        return math.nextafter(self.process.end / self.factor, math.inf)

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first, found = self.process.numbered(start * self.factor, stop * self.factor)
        return first, found / self.factor


class BatchedArrivals(Arrivals):
    """Another process through a collector that sends what it has at regular intervals."""

    def __init__(self, process: Arrivals, every: float) -> None:
        super().__init__(process.rate, process.carries)
        self.process, self.every = process, every

    @cached_property
    def end(self) -> float:
        end = self.process.end
        return end if math.isinf(end) else math.nextafter(float(self._send_times(np.array([end]))[0]), math.inf)

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first, found = self.process.numbered(start - 2 * self.every, stop + self.every)
        return first, self._send_times(found)

    def _send_times(self, instants: Floats) -> Floats:
        """When what comes at these instants is sent on: at the end of a stretch; the first begins with the process."""
        start: float = self.process._start
        return start + np.ceil((instants - start) / self.every) * self.every
