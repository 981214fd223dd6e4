"""Independent arrivals, and groups of them."""

from __future__ import annotations

import numpy as np

from dsms.arrivals.process import BLOCK, COUNTS, HAIR, INSTANTS, Arrivals, Floats, draw


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
