"""Which segment runs next: the one decision this system exists to study, kept in order as things change."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from dsms.ledger import Ledger
from dsms.policies.base import Policy
from dsms.segment import Segment

# (−priority, sequence number of the oldest tuple, order, segment): the least is the first to run. Order is unique.
Entry = tuple[float, float, int, Segment]


class ReadyOrder:
    """A heap of the segments with work; only those whose state has changed are ranked anew."""

    def __init__(self, policy: Policy, segments: Sequence[Segment], ledger: Ledger) -> None:
        self.policy, self.segments = policy, segments
        self._ledger = ledger
        self._heap: list[Any] = []
        downstream = sorted(segments, key=lambda s: (-s.stations[0].depth, s.stations[0].index, s.index))
        for order, segment in enumerate(downstream):
            segment.order = order
            segment.ranked = None
        ledger.bind(segments)

    def first(self) -> Segment | None:
        """The segment of the highest priority that has work; ties go to the oldest tuple, then further downstream."""
        ledger = self._ledger
        if ledger.changed:
            changed, ledger.changed = ledger.changed, []
            for segment in changed:
                segment.changed = False
                self._rank(segment)
        heap = self._heap
        while heap:
            entry = heap[0]
            segment: Segment = entry[3]
            if segment.ranked is entry:
                return segment
            heappop(heap)  # out of date
        return None

    def rerank(self) -> None:
        """All priorities may have changed: weights, statistics, a setting of the policy."""
        for segment in self.segments:
            self.touch(segment)

    def touch(self, segment: Segment) -> None:
        """This one's priority may have changed."""
        if not segment.changed:
            segment.changed = True
            self._ledger.changed.append(segment)

    def _rank(self, segment: Segment) -> None:
        old = segment.ranked
        heap = self._heap
        if not segment.pending:
            segment.ranked = None
            return
        segment.oldest = oldest = segment.start().oldest
        entry = (-self.policy.priority(segment), oldest, segment.order, segment)
        if old is not None and old == entry:
            return
        segment.ranked = entry
        if heap and heap[0] is old:
            heapreplace(heap, entry)  # the segment that ran last is still on top
        else:
            heappush(heap, entry)
            if len(heap) > 64 and len(heap) > 4 * len(self.segments):
                self._heap = [segment.ranked for segment in self.segments if segment.ranked is not None]
                heapify(self._heap)
