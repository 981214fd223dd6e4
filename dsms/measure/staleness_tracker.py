"""QueryStaleness: the stale time that each completion adds to its query, in bounded memory.

`staleness.py` defines staleness and measures a whole run. Here each completion returns the pieces that it adds, because
a piece may lie in seconds and phases that are over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsms.measure.completions import StaleIntervals
from dsms.measure.run_measures import is_ordered_by_query
from dsms.plan.graph import Plan

KEPT_GAPS = 256  # per query: fresh intervals that an older pending result may still make stale


class QueryStaleness:
    """By query: the end of the known stale time, and the fresh gaps before it."""

    def __init__(self, plan: Plan, since: float = 0.0) -> None:
        self.names = [query.name for query in plan.queries]
        self.gaps: list[list[tuple[float, float]]] = [[] for _ in self.names]
        self._ordered = np.array(is_ordered_by_query(plan), dtype=np.bool_)
        self._ends: NDArray[np.float64] = np.full(len(self.names), since)

    def pieces(self, stale_intervals: StaleIntervals) -> StaleIntervals:
        """Return the newly stale intervals, without overlaps."""
        query_index, since, until = stale_intervals
        if not len(query_index):
            return stale_intervals
        first = np.diff(query_index, prepend=-1) != 0
        covered = np.where(first, self._ends[query_index], np.concatenate(([0.0], until[:-1])))
        found = [StaleIntervals(query_index, np.maximum(since, covered), until)]
        if not self._ordered[query_index].all():
            found += self._older(stale_intervals, covered)
        last = np.append(np.flatnonzero(first)[1:], len(query_index)) - 1
        self._ends[query_index[last]] = np.maximum(self._ends[query_index[last]], until[last])
        query_index, since, until = map(np.concatenate, zip(*found, strict=True))
        real = until > since
        return StaleIntervals(query_index[real], since[real], until[real])

    def _older(self, stale_intervals: StaleIntervals, covered: NDArray[np.float64]) -> list[StaleIntervals]:
        """Return the gaps that were stale after all, where results leave out of order."""
        rows: list[tuple[int, float, float]] = []
        columns = zip(
            stale_intervals.query_index.tolist(), stale_intervals.since.tolist(), covered.tolist(), strict=True
        )
        for query, since, end in columns:
            if self._ordered[query]:
                continue
            gaps = self.gaps[query]
            if since > end:
                gaps.append((end, since))
                del gaps[:-KEPT_GAPS]
            while gaps and gaps[-1][1] > since:
                start, stop = gaps.pop()
                rows.append((query, max(start, since), stop))
                if start < since:
                    gaps.append((start, since))
        if not rows:
            return []
        query_index, start, stop = zip(*rows, strict=True)
        return [StaleIntervals(np.array(query_index), np.array(start), np.array(stop))]

    def forget(self) -> None:
        """Drop all gaps, because no pending result can fill them."""
        for gaps in self.gaps:
            gaps.clear()

    def migrate(self, plan: Plan, now: float) -> QueryStaleness:
        """Return the tracker for another plan; queries that stay keep their state."""
        after = QueryStaleness(plan, now)
        here = {name: place for place, name in enumerate(self.names)}
        for place, name in enumerate(after.names):
            if name in here:
                after.gaps[place] = list(self.gaps[here[name]])
                after._ends[place] = self._ends[here[name]]
        return after
