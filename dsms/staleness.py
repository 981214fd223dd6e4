"""For how long an output stream was behind its input: the union of the intervals in which a result was on its way.

Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines", section 2: a stream is stale while an
update that will become a result waits or is processed; one that will be filtered out does not make it stale. So an
interval is added when a result leaves, from its arrival on, and no fate need be known before.
"""

from __future__ import annotations


class Staleness:
    """The length of a union of intervals, added in the order of their ends."""

    __slots__ = ("_end", "gaps", "ordered", "total")

    def __init__(self, ordered: bool = False) -> None:
        self.ordered = ordered  # whether intervals also begin in order: then no gap is ever filled later
        self.total = 0.0
        self.gaps: list[tuple[float, float]] = []  # fresh so far, but an older tuple may still be on its way
        self._end = 0.0

    def add(self, since: float, until: float) -> None:
        """Stale from `since` to `until`."""
        end = self._end
        if since >= end:
            self.total += until - since
            if not self.ordered and since > end:
                self.gaps.append((end, since))
        else:
            self.total += until - end
            if self.gaps:
                self._fill(since)
        self._end = until

    def _fill(self, since: float) -> None:
        """The gaps after `since` turn out to have been stale."""
        gaps = self.gaps
        while gaps and gaps[-1][1] > since:
            start, stop = gaps.pop()
            if start < since:
                gaps.append((start, since))
                start = since
            self.total += stop - start
