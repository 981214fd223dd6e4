"""On/off arrivals: sources that alternate between ON and OFF for Pareto times; their sum is self-similar.

Willinger, Taqqu, Sherman, Wilson: "Self-similarity through high-variability" (1997): the sum of many such sources is
self-similar, its Hurst exponent H = (3 − alpha)/2.
"""

from __future__ import annotations

import numpy as np

from dsms.arrivals.process import BEGINNING, DURATIONS, Arrivals, Floats, block_generator

ROUNDS_PER_DRAW = 64  # ON and OFF periods drawn at a time for every source
MAX_PERIOD_MEANS = 1e12  # caps a period, in means, at a value that floats can add


class OnOff(Arrivals):
    """Independent sources that alternate between ON, sending evenly, and OFF, for Pareto times.

    They begin stationary: at time 0 a source is ON with the chance that it is at any time, and how long it stays so is
    distributed as what is left of a time looked into at random. A source that falls silent goes on later where it
    stopped, so that ON times of less than a gap between two tuples count too, and the rate is exact.
    """

    def __init__(self, rate: float, sources: int, alpha: float, on: float, off: float, seed: int) -> None:
        super().__init__(rate)
        self._alpha, self._on, self._off, self._seed = alpha, on, off, seed
        self._least = 1 - 1 / alpha  # the minimum of a Pareto time of mean 1
        self._gap = sources * on / (on + off) / rate  # between two tuples of a source that is ON
        begin = block_generator(seed, BEGINNING, 0)
        self._late = begin.random(sources)  # by source: offset of its first tuple, in gaps
        sending = begin.random(sources) < on / (on + off)
        left, usual = self._left(begin, sources), self._least * (1 + begin.pareto(alpha, sources))
        # By source and round: when it turns ON, and its ON time before.
        self._begins = np.where(sending, 0.0, left * off)[:, None]
        self._sent = np.zeros((sources, 1))
        self._first = np.where(sending, left, usual)  # the first ON period, in means

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        while self._begins[:, -1].min() <= stop:
            self._extend()
        # The rounds in which each source may send: from the one at `start` to the one at `stop`.
        rounds = np.array([np.searchsorted(begins, (start, stop), side="right") for begins in self._begins])
        early, late = np.maximum(rounds[:, 0] - 1, 0), np.maximum(rounds[:, 1], 1)
        source = np.repeat(np.arange(len(early)), late - early)
        index = np.arange(len(source)) - np.repeat(np.cumsum(late - early) - late, late - early)
        begins, before, after = self._begins[source, index], self._sent[source, index], self._sent[source, index + 1]
        # One tuple more than needed at either end of the window, for rounding; the cut below is exact.
        first = self._number(np.minimum(before + np.maximum(start - begins, 0.0), after), source) - 1
        last = self._number(np.minimum(before + np.maximum(stop - begins, 0.0), after), source) + 1
        first = np.maximum(first, self._number(before, source))
        counts = np.maximum(np.minimum(last, self._number(after, source)) - first, 0.0).astype(np.int64)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - first.astype(np.int64), counts)
        shift = begins - before
        sent = (within + np.repeat(self._late[source], counts)) * self._gap
        found = np.sort(np.repeat(shift, counts) + sent)
        low, high = np.searchsorted(found, (start, stop))
        opening = np.flatnonzero(np.diff(source, prepend=-1))  # the first round of each source
        return int(first[opening].sum()) + int(low), found[low:high]

    def _number(self, sent: Floats, source: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        """Return how many tuples each source has sent after this ON time."""
        number: Floats = np.ceil(np.maximum(sent / self._gap - self._late[source], 0.0))
        return number

    def _extend(self) -> None:
        """Draw half as many rounds again for every source, so that the cost is proportional to time."""
        block = self._begins.shape[1] // ROUNDS_PER_DRAW
        drawn = [self._rounds(block + more) for more in range(max(1, block // 2))]
        on, off = (np.concatenate(times, axis=1) for times in zip(*drawn, strict=True))
        self._begins, self._sent = _extend_running_sums(self._begins, on + off), _extend_running_sums(self._sent, on)

    def _rounds(self, block: int) -> tuple[Floats, Floats]:
        """Draw the ON and OFF times of every source in a block of rounds."""
        shape = (2, len(self._late), ROUNDS_PER_DRAW)
        on, off = np.minimum(
            self._least * (1 + block_generator(self._seed, DURATIONS, block).pareto(self._alpha, shape)),
            MAX_PERIOD_MEANS,
        )
        if not block:
            on[:, 0] = self._first
        return on * self._on, off * self._off

    def _left(self, begin: np.random.Generator, sources: int) -> Floats:
        """Draw residual Pareto times of mean 1, with density P(time > x)."""
        short, long = begin.random(sources), self._least * (1 + begin.pareto(self._alpha - 1, sources))
        return np.minimum(np.where(short < self._least, short, long), MAX_PERIOD_MEANS)


def _extend_running_sums(sums: Floats, more: Floats) -> Floats:
    """Return running sums of every row, continued bit-identically whatever the block size."""
    rest = np.cumsum(np.concatenate((sums[:, -1:], more), axis=1), axis=1)
    return np.concatenate((sums, rest[:, 1:]), axis=1)
