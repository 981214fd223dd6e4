"""Poisson arrivals, single or in bursts."""

from __future__ import annotations

import numpy as np

from dsms.arrivals.process import (
    COUNTS,
    DRAW_BLOCK_TUPLES,
    INSTANTS,
    WINDOW_TOLERANCE,
    Arrivals,
    Floats,
    block_generator,
)


class Poisson(Arrivals):
    """Independent arrivals: each slice of time has a Poisson number of them, spread uniformly."""

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__(rate)
        self._seed = seed
        # Slices rather than sums of gaps: to read a late slice only the counts before it are drawn.
        self.slice_length = DRAW_BLOCK_TUPLES / rate
        self._before = np.zeros(1, dtype=np.int64)  # tuples before each slice
        self._recent: tuple[range, Floats] = (range(0), np.empty(0))

    def slices(self, start: float, stop: float) -> range:
        """Return the slices that cover [start, stop)."""
        first = int(max(0.0, start) / self.slice_length * (1 - WINDOW_TOLERANCE))
        return range(first, int(max(0.0, stop) / self.slice_length * (1 + WINDOW_TOLERANCE)) + 1)

    def count_before(self, index: int) -> int:
        """Return the number of tuples before this slice."""
        while len(self._before) <= index:
            counts = block_generator(self._seed, COUNTS, len(self._before) // DRAW_BLOCK_TUPLES).poisson(
                DRAW_BLOCK_TUPLES, DRAW_BLOCK_TUPLES
            )
            self._before = np.concatenate((self._before, self._before[-1] + np.cumsum(counts)))
        return int(self._before[index])

    def instants(self, slices: range) -> Floats:
        """Return the instants of consecutive slices; caches the last answer for small adjacent windows."""
        if slices != self._recent[0]:
            self._recent = slices, np.concatenate([self._slice(index) for index in slices])
        return self._recent[1]

    def _slice(self, index: int) -> Floats:
        number = self.count_before(index + 1) - self.count_before(index)
        spread: Floats = np.sort(block_generator(self._seed, INSTANTS, index).random(number))
        return index * self.slice_length + spread * self.slice_length

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        slices = self.slices(start, stop)
        return self.count_before(slices.start), self.instants(slices)


class Bursts(Poisson):
    """A Poisson stream where every `group` consecutive tuples arrive together with the first (G12)."""

    def __init__(self, rate: float, group: int, seed: int) -> None:
        super().__init__(rate, seed)
        self._group = group

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first, found = super()._run(start, stop)
        skipped = -first % self._group
        return first + skipped, np.repeat(found[skipped :: self._group], self._group)
