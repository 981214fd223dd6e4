"""Which segment runs next: the one decision this system exists to study, kept in order as things change."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from dsms.ledger import NOTHING, Ledger
from dsms.policies.base import Policy
from dsms.segment import Segment


class ReadyOrder:
    """A heap of the segments with work; only those whose state has changed are ranked anew.

    An entry is (−priority, sequence number of the oldest tuple, order, segment); the least runs first. `order` is
    unique: further downstream first, then plan order.
    """

    def __init__(self, policy: Policy, segments: Sequence[Segment], ledger: Ledger) -> None:
        self.policy, self.segments = policy, segments
        self._changes = ledger.changes
        self._heap: list[Any] = []
        downstream = sorted(segments, key=lambda s: (-s.stations[0].depth, s.stations[0].index, s.index))
        for order, segment in enumerate(downstream):
            segment.order = order
            segment.ranked = None
            segment.priority = policy.priority(segment)
        ledger.bind(segments)

    def first(self) -> Segment | None:
        """The segment of the highest priority that has work; ties go to the oldest tuple, then further downstream."""
        if self._changes:
            self._catch_up()
        heap = self._heap
        while heap:
            entry = heap[0]
            segment: Segment = entry[3]
            if segment.ranked is entry:
                return segment
            heappop(heap)  # out of date
        return None

    def touch(self, segment: Segment) -> None:
        """Its priority has changed though its queues have not: new statistics, another weight."""
        segment.priority = self.policy.priority(segment)
        segment.ranked = None
        for queue in segment.queues:
            queue.put(0, queue.oldest)

    def _catch_up(self) -> None:
        """Bring the backlog of the segments whose queues changed up to date, and rank them anew."""
        policy, dynamic, heap = self.policy, self.policy.dynamic, self._heap
        for queue in self._changes:
            queue.changed = False
            if queue.oldest == NOTHING:
                queue.count = 0  # exactly, whatever fractions added up to
                if queue.counted == 0:
                    continue  # filled and emptied within a turn
            moved, queue.counted = queue.count - queue.counted, queue.count
            for segment in queue.segments:
                if segment.only is not None:
                    segment.pending, oldest = queue.count, queue.oldest
                else:
                    segment.pending += moved
                    oldest = segment.start().oldest
                old = segment.ranked
                if oldest == NOTHING:
                    segment.ranked = None
                    continue
                if dynamic:
                    segment.priority = policy.priority(segment)
                elif old is not None and old[1] == oldest:
                    continue  # its head is the same, so is its rank
                segment.ranked = entry = (-segment.priority, oldest, segment.order, segment)
                if heap and heap[0] is old:
                    heapreplace(heap, entry)  # the segment that ran last is still on top
                else:
                    heappush(heap, entry)
        self._changes.clear()
        if len(heap) > 64 + 4 * len(self.segments):
            self._heap = [segment.ranked for segment in self.segments if segment.ranked is not None]
            heapify(self._heap)
