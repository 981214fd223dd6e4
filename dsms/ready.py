"""Which segment runs next: the one decision this system exists to study, kept in order as things change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from dsms.errors import PolicyError
from dsms.ledger import NOTHING, Ledger, Queue
from dsms.policies.base import Policy
from dsms.segment import Segment


class ReadyOrder:
    """A heap of the segments with work; only those whose state has changed are ranked anew.

    An entry is (−priority, sequence number of the oldest tuple, order, segment); the least runs first. `order` is
    unique: further downstream first, then plan order. Where a policy's ties do not go by age, the second is its place.
    """

    def __init__(self, policy: Policy, segments: Sequence[Segment], ledger: Ledger, dynamic: bool = True) -> None:
        self.policy, self.segments = policy, segments
        self._changes = ledger.changes
        self._merges = ledger.merges
        self._concerned: dict[int, Segment] = {}  # segments of several queues, one of which has changed
        self._dynamic, self._by_age = dynamic, policy.by_age
        self.best = math.inf  # of a policy that does not look at backlogs: the best key of all, work or not
        self._tops: list[tuple[float, int]] = []  # a heap of (key, place) of all segments, some of old
        self._heap: list[Any] = []
        self._keys: dict[float, float] = {}
        downstream = sorted(segments, key=lambda s: (-s.stations[0].depth, s.stations[0].index, s.index))
        for order, segment in enumerate(downstream):
            segment.order = order
            segment.ranked = None
            if not dynamic:
                segment.key = self._key(segment)
        if not dynamic and segments:
            self._tops = [(segment.key, place) for place, segment in enumerate(segments)]
            heapify(self._tops)
            self.best = self._tops[0][0]
        ledger.bind(segments)

    def first(self) -> Segment | None:
        """The segment of the highest priority that has work; ties go to the oldest tuple, then further downstream."""
        if self._merges:
            self._look_up()
        for queue in self._changes:
            queue.changed = False
            segment = queue.sole
            if segment is None:
                self._note(queue)
            elif queue.oldest == NOTHING:
                queue.count = segment.pending = 0  # exactly, whatever fractions added up to
                segment.ranked = None
            else:
                segment.pending = queue.count
                self._rank(segment, queue.oldest)
        self._changes.clear()
        if self._concerned:
            self._rank_concerned()
        heap = self._heap
        while heap:
            entry = heap[0]
            first: Segment = entry[3]
            if first.ranked is entry:
                return first
            heappop(heap)  # out of date
        return None

    def look(self, now: float) -> Segment | None:
        """The first, at this instant."""
        return self.first()

    def tidy(self) -> None:
        """Throw away entries that are out of date but too low to come up."""
        if len(self._heap) > 64 + 4 * len(self.segments):
            self._heap[:] = [segment.ranked for segment in self.segments if segment.ranked is not None]
            heapify(self._heap)
        if len(self._tops) > 64 + 4 * len(self.segments):
            self._tops = [(segment.key, place) for place, segment in enumerate(self.segments)]
            heapify(self._tops)
        if len(self._keys) > 64 + 4 * len(self.segments):
            self._keys.clear()

    def touch(self, segment: Segment) -> None:
        """Its priority has changed though its queues have not: new statistics, another weight."""
        if not self._dynamic:
            segment.key = self._key(segment)
            heappush(self._tops, (segment.key, segment.index))
            while self._tops[0][0] != self.segments[self._tops[0][1]].key:
                heappop(self._tops)
            self.best = self._tops[0][0]
        segment.ranked = None
        for queue in segment.queues:
            queue.put(0, queue.oldest)

    def _key(self, segment: Segment) -> float:
        """What it is sorted by first; equal keys are one object, which a heap compares without looking into it."""
        key = -self.policy.priority(segment)
        if math.isnan(key):
            raise self._unranked(segment)
        return self._keys.setdefault(key, key)

    def _unranked(self, segment: Segment) -> PolicyError:
        return PolicyError(f"policy {self.policy.name!r} gives {segment} no priority: it is not a number")

    def _rank(self, segment: Segment, oldest: float) -> None:
        """Enter a segment that has work under its present priority."""
        old = segment.ranked
        if self._dynamic:
            segment.key = key = -self.policy.priority(segment)
            if key != key:
                raise self._unranked(segment)
        elif old is not None and old[1] == oldest:
            return  # its head is the same, so is its rank
        segment.ranked = entry = (segment.key, oldest if self._by_age else segment.index, segment.order, segment)
        heap = self._heap
        if heap and heap[0] is old:
            heapreplace(heap, entry)  # the segment that ran last is still on top
        else:
            heappush(heap, entry)

    def _look_up(self) -> None:
        """Where the oldest of several inputs goes first: which of them that is may depend on queues far above."""
        for merge in {id(merge): merge for queue in self._changes for merge in queue.below}.values():
            for queue in merge.queues:
                if merge.head(queue) != queue.headed:
                    queue.put(0, queue.oldest)

    def _note(self, queue: Queue) -> None:
        """Bring up to date the backlogs and heads of segments that take from this queue and others, or share it."""
        if queue.oldest == NOTHING:
            queue.count = 0
            if queue.counted == 0:
                return  # filled and emptied within a turn
        moved, queue.counted = queue.count - queue.counted, queue.count
        head = queue.oldest if queue.merge is None else queue.merge.head(queue)
        another = head not in (queue.headed, NOTHING)
        queue.headed = head
        for segment in queue.segments:
            segment.pending += moved
            if another:
                segment.enter(queue)
            self._concerned[segment.index] = segment

    def _rank_concerned(self) -> None:
        """Rank segments of several queues, now that all of these are known."""
        for segment in self._concerned.values():
            if segment.linear:
                self._look_inside(segment)
            oldest = segment.start().headed
            if oldest == NOTHING:
                segment.pending = sum(q.counted for q in segment.queues) if self._merges else 0
                segment.ranked = None
            else:
                self._rank(segment, oldest)
        self._concerned.clear()

    def _look_inside(self, segment: Segment) -> None:
        """Of a row of stations with nothing inside, the first queue is all there is until something is left there."""
        first, *inside = segment.queues
        first.counted, first.headed = first.count, first.oldest
        left = sum(queue.counted for queue in inside)
        segment.pending = first.count + left
        first.sole = segment if not left and len(first.segments) == 1 else None
