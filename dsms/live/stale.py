"""When each query's output was behind its input: what every departure adds to that, in little memory.

The definition is that of `dsms/staleness.py`. There the length is kept; here the pieces are handed on, since they may
reach back into seconds and phases that are over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsms.departures import Spells
from dsms.measures import ordered
from dsms.plan import Plan

GAPS = 256  # fresh stretches of a query that an older tuple may still turn out to have made stale


class Stale:
    """Up to where each query's output is known to have been stale, and where it was fresh before that."""

    def __init__(self, plan: Plan, since: float = 0.0) -> None:
        self.names = [query.name for query in plan.queries]
        self.gaps: list[list[tuple[float, float]]] = [[] for _ in self.names]
        self._ordered = np.array(ordered(plan), dtype=np.bool_)
        self._ends: NDArray[np.float64] = np.full(len(self.names), since)

    def pieces(self, spells: Spells) -> Spells:
        """What has been stale and was not known to be so; no two overlap."""
        whose, since, until = spells
        if not len(whose):
            return spells
        first = np.diff(whose, prepend=-1) != 0
        covered = np.where(first, self._ends[whose], np.concatenate(([0.0], until[:-1])))
        found = [Spells(whose, np.maximum(since, covered), until)]
        if not self._ordered[whose].all():
            found += self._older(spells, covered)
        last = np.append(np.flatnonzero(first)[1:], len(whose)) - 1
        self._ends[whose[last]] = np.maximum(self._ends[whose[last]], until[last])
        whose, since, until = map(np.concatenate, zip(*found, strict=True))
        real = until > since
        return Spells(whose[real], since[real], until[real])

    def _older(self, spells: Spells, covered: NDArray[np.float64]) -> list[Spells]:
        """Gaps that turn out to have been stale, where results do not leave in the order of arrival."""
        rows: list[tuple[int, float, float]] = []
        columns = zip(spells.whose.tolist(), spells.since.tolist(), covered.tolist(), strict=True)
        for query, since, end in columns:
            if self._ordered[query]:
                continue
            gaps = self.gaps[query]
            if since > end:
                gaps.append((end, since))
                del gaps[:-GAPS]
            while gaps and gaps[-1][1] > since:
                start, stop = gaps.pop()
                rows.append((query, max(start, since), stop))
                if start < since:
                    gaps.append((start, since))
        if not rows:
            return []
        whose, start, stop = zip(*rows, strict=True)
        return [Spells(np.array(whose), np.array(start), np.array(stop))]

    def forget(self) -> None:
        """Nothing is under way that could fill a gap."""
        for gaps in self.gaps:
            gaps.clear()

    def carried(self, plan: Plan, now: float) -> Stale:
        """The same for another plan: what is known of queries that stay goes on."""
        after = Stale(plan, now)
        here = {name: place for place, name in enumerate(self.names)}
        for place, name in enumerate(after.names):
            if name in here:
                after.gaps[place] = list(self.gaps[here[name]])
                after._ends[place] = self._ends[here[name]]
        return after
