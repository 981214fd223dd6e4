"""Staleness: how long an output was behind its input: the union of the intervals with a pending result.

Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines", section 2: a stream is stale while an
update that will become a result waits or is processed; one that will be filtered out does not make it stale. So an
interval is added when a result leaves, from its arrival on, and no fate need be known before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MAX_LOOP_INTERVALS = 16  # fewer are faster to add one by one


class Staleness:
    """The length of a union of intervals that are added in the order of their ends."""

    def __init__(self, ordered: bool = False) -> None:
        self.ordered = ordered  # whether intervals also start in order: then gaps stay gaps
        self.total = 0.0
        self.gaps: list[tuple[float, float]] = []  # fresh so far, but an older result may be pending
        self._end = 0.0

    def add(self, since: Sequence[float], until: Sequence[float]) -> None:
        """Add stale intervals."""
        if not self.ordered:
            for start, stop in zip(since, until, strict=True):
                self._add_one(start, stop)
            return
        if len(since) <= MAX_LOOP_INTERVALS:
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
        while gaps and gaps[-1][1] > since:  # these gaps were stale after all
            start, stop = gaps.pop()
            self.total += stop - max(start, since)
            if start < since:
                gaps.append((start, since))
        self._end = until
