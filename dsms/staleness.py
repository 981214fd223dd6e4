"""For how long an output stream was behind its input: the union of the intervals in which a result was on its way.

Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines", section 2: a stream is stale while an
update that will become a result waits or is processed; one that will be filtered out does not make it stale. So an
interval is added when a result leaves, from its arrival on, and no fate need be known before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FEW = 16  # intervals that are sooner added one by one than as columns


class Staleness:
    """The length of a union of intervals, added in the order of their ends."""

    def __init__(self, ordered: bool = False) -> None:
        self.ordered = ordered  # whether intervals also begin in order: then no gap is ever filled later
        self.total = 0.0
        self.gaps: list[tuple[float, float]] = []  # fresh so far, but an older tuple may still be on its way
        self._end = 0.0

    def add(self, since: Sequence[float], until: Sequence[float]) -> None:
        """Stale in these intervals."""
        if not self.ordered:
            for start, stop in zip(since, until, strict=True):
                self._add_one(start, stop)
            return
        if len(since) <= FEW:
            for start, stop in zip(since, until, strict=True):
                self.total += stop - max(start, self._end)
                self._end = stop
            return
        ends = np.array([self._end, *until])
        covered = np.maximum.accumulate(ends[:-1])
        self.total += float((ends[1:] - np.maximum(since, covered)).sum())
        self._end = until[-1]

    def _add_one(self, since: float, until: float) -> None:
        end, gaps = self._end, self.gaps
        self.total += until - max(since, end)
        if since > end:
            gaps.append((end, since))
        while gaps and gaps[-1][1] > since:  # these gaps turn out to have been stale
            start, stop = gaps.pop()
            self.total += stop - max(start, since)
            if start < since:
                gaps.append((start, since))
        self._end = until
