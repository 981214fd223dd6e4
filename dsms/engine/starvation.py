"""StarvationGuard: a ready order that also finds segments that waited too long and counts priority updates."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from dsms.engine.ledger import Ledger
from dsms.engine.policy import Policy
from dsms.engine.ready_order import ReadyOrder
from dsms.plan.segment import Segment


class StarvationGuard(ReadyOrder):
    """Keeps since when each segment with work has waited: since it got work, or since its last turn."""

    def __init__(self, policy: Policy, segments: Sequence[Segment], ledger: Ledger, dynamic: bool = True) -> None:
        super().__init__(policy, segments, ledger, dynamic)
        self._has_entry_cost = dynamic and policy.traits.has_entry_cost
        self.operations = 0  # priorities entered for the latest decision
        self.is_limited = True  # whether the plan limits waiting
        self._since: dict[int, float] = {}  # by serial: when its wait began
        self._wait_queue: deque[tuple[float, Segment]] = deque()  # in that order; some entries are stale

    def migrate_from(self, before: StarvationGuard) -> None:
        """Take over the waits after a re-cut: a segment has waited as long as its longest-waiting station."""
        since: dict[int, float] = {}  # by station: the earliest start of a wait
        for segment in before.segments:
            if segment.serial in before._since:
                for station in segment.stations:
                    began = before._since[segment.serial]
                    since[station.index] = min(began, since.get(station.index, began))
        waiting = [(min(since.get(s.index, math.inf) for s in new.stations), new) for new in self.segments]
        for began, segment in sorted(waiting, key=lambda entry: entry[0]):
            if began < math.inf:
                self._wait(segment, began)

    def look(self, now: float) -> Segment | None:
        """Return the first segment; record which segments start and stop waiting now."""
        if self._merges:
            self._update_merge_heads()  # tuples unblocked by queues upstream start to wait too
        changed = {s.serial: s for queue in self._changes for s in queue.segments}
        first = self.first()
        self.operations = 0
        for serial, segment in changed.items():
            if segment.ranked is None:
                self._since.pop(serial, None)
                continue
            self.operations += self._has_entry_cost
            if self.is_limited and serial not in self._since:
                self._wait(segment, now)
        return first

    def overdue(self, now: float, limit: float) -> Segment | None:
        """Return the segment that has waited longest, if longer than the limit."""
        line = self._wait_queue
        while line:
            since, segment = line[0]
            if self._since.get(segment.serial) == since:
                return segment if now - since > limit else None
            line.popleft()
        return None

    def record_served(self, segment: Segment, now: float) -> None:
        """Restart the wait of a segment that gets its turn now."""
        if self.is_limited:
            self._wait(segment, now)

    def _wait(self, segment: Segment, now: float) -> None:
        self._since[segment.serial] = now
        self._wait_queue.append((now, segment))
