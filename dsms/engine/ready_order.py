"""ReadyOrder: ranks the segments with work by priority and returns the one that runs next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from dsms.engine.ledger import NO_HEAD, Ledger, Queue
from dsms.engine.policy import Policy
from dsms.errors import PolicyError
from dsms.plan.segment import Segment

ALONE_LIMIT = 8  # entries that are looked at


class ReadyOrder:
    """A heap of the segments with work; only segments whose state has changed are ranked again.

    An entry is (−priority, sequence number of the oldest tuple, order, segment); the least runs first. `order` is
    unique: further downstream first, then plan order. If ties do not go by age, the second is the segment's index.
    """

    def __init__(self, policy: Policy, segments: Sequence[Segment], ledger: Ledger, dynamic: bool = True) -> None:
        self.policy, self.segments = policy, segments
        self._changes = ledger.changes
        self._merges = ledger.merges
        self._dirty_segments: dict[int, Segment] = {}  # segments with several queues, one of which has changed
        self._dynamic, self._by_age = dynamic, policy.traits.by_age
        self.best = math.inf  # of a static policy: the lowest key of all segments, with work or not
        self._key_heap: list[tuple[float, int]] = []  # heap of (key, index) of all segments; some entries are stale
        self._heap: list[Any] = []
        self._keys: dict[float, float] = {}
        downstream = sorted(segments, key=lambda s: (-s.stations[0].depth, s.stations[0].index, s.index))
        for order, segment in enumerate(downstream):
            segment.order = order
            segment.ranked = None
            if not dynamic:
                segment.key = self._key(segment)
        if not dynamic and segments:
            self._key_heap = [(segment.key, place) for place, segment in enumerate(segments)]
            heapify(self._key_heap)
            self.best = self._key_heap[0][0]
        ledger.bind(segments)

    def first(self) -> Segment | None:
        """Return the segment with work of highest priority; ties go to the oldest tuple, then the most downstream."""
        if self._merges:
            self._update_merge_heads()
        for queue in self._changes:
            queue.changed = False
            segment = queue.only_segment
            if segment is None:
                self._note(queue)
            elif queue.oldest == NO_HEAD:
                queue.count = segment.pending = 0  # exactly 0, despite rounding of fractions
                segment.ranked = None
            else:
                segment.pending = queue.count
                self._rank(segment, queue.oldest)
        self._changes.clear()
        if self._dirty_segments:
            self._rank_dirty_segments()
        heap = self._heap
        while heap:
            entry = heap[0]
            first: Segment = entry[3]
            if first.ranked is entry:
                return first
            heappop(heap)  # stale
        return None

    def look(self, now: float) -> Segment | None:
        """Return the segment to run at this instant."""
        return self.first()

    def is_alone(self) -> bool:
        """Return whether surely only the first segment has work; a long heap, stale or not, counts as more."""
        heap = self._heap
        return len(heap) <= ALONE_LIMIT and all(entry is heap[0] or entry[3].ranked is not entry for entry in heap)

    def compact(self) -> None:
        """Remove stale entries that are too low to reach the top."""
        if len(self._heap) > 64 + 4 * len(self.segments):
            self._heap[:] = [segment.ranked for segment in self.segments if segment.ranked is not None]
            heapify(self._heap)
        if len(self._key_heap) > 64 + 4 * len(self.segments):
            self._key_heap = [(segment.key, place) for place, segment in enumerate(self.segments)]
            heapify(self._key_heap)
        if len(self._keys) > 64 + 4 * len(self.segments):
            self._keys.clear()

    def reprioritize(self, segment: Segment) -> None:
        """Rank a segment again whose statistics or weight have changed."""
        if not self._dynamic:
            segment.key = self._key(segment)
            heappush(self._key_heap, (segment.key, segment.index))
            while self._key_heap[0][0] != self.segments[self._key_heap[0][1]].key:
                heappop(self._key_heap)
            self.best = self._key_heap[0][0]
        segment.ranked = None
        for queue in segment.queues:
            queue.put(0, queue.oldest)

    def _key(self, segment: Segment) -> float:
        """Return minus the priority; equal keys are one object, so that the heap compares them by identity."""
        key = -self.policy.priority(segment)
        if math.isnan(key):
            raise self._unranked_error(segment)
        return self._keys.setdefault(key, key)

    def _unranked_error(self, segment: Segment) -> PolicyError:
        return PolicyError(f"policy {self.policy.name!r} gives {segment} no priority: it is not a number")

    def _rank(self, segment: Segment, oldest: float) -> None:
        """Enter a segment with work under its current priority."""
        old = segment.ranked
        if self._dynamic:
            segment.key = key = -self.policy.priority(segment)
            if key != key:
                raise self._unranked_error(segment)
        elif old is not None and old[1] == oldest:
            return  # the head has not changed, so neither has the rank
        segment.ranked = entry = (segment.key, oldest if self._by_age else segment.index, segment.order, segment)
        heap = self._heap
        if heap and heap[0] is old:
            heapreplace(heap, entry)  # the segment that ran last is at the top
        else:
            heappush(heap, entry)

    def _update_merge_heads(self) -> None:
        """Update the heads of merged inputs: which input is next may depend on queues far upstream."""
        for merge in {id(merge): merge for queue in self._changes for merge in queue.downstream_merges}.values():
            for queue in merge.queues:
                if merge.head(queue) != queue.entered_head:
                    queue.put(0, queue.oldest)

    def _note(self, queue: Queue) -> None:
        """Update backlogs and heads of segments that take from several queues or share this one."""
        if queue.oldest == NO_HEAD:
            queue.count = 0
            if queue.backlog_counted == 0:
                return  # filled and emptied within one turn
        moved, queue.backlog_counted = queue.count - queue.backlog_counted, queue.count
        head = queue.oldest if queue.merge is None else queue.merge.head(queue)
        another = head not in (queue.entered_head, NO_HEAD)
        queue.entered_head = head
        for segment in queue.segments:
            segment.pending += moved
            if another:
                segment.enter(queue)
            self._dirty_segments[segment.index] = segment

    def _rank_dirty_segments(self) -> None:
        """Rank the segments with several queues, now that all queues are up to date."""
        for segment in self._dirty_segments.values():
            if segment.linear:
                self._update_path(segment)
            oldest = segment.start().entered_head
            if oldest == NO_HEAD:
                segment.pending = sum(q.backlog_counted for q in segment.queues) if self._merges else 0
                segment.ranked = None
            else:
                self._rank(segment, oldest)
        self._dirty_segments.clear()

    def _update_path(self, segment: Segment) -> None:
        """Update a path's backlog, and note whether its first queue holds all of it: not if a turn ended inside."""
        first, *inside = segment.queues
        first.backlog_counted, first.entered_head = first.count, first.oldest
        left = sum(queue.backlog_counted for queue in inside)
        segment.pending = first.count + left
        first.only_segment = segment if not left and len(first.segments) == 1 else None
