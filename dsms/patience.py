"""A ready order that also keeps watch: who has waited too long, and how many priorities had to be entered anew."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from dsms.ledger import Ledger
from dsms.policies.base import Policy
from dsms.ready import ReadyOrder
from dsms.segment import Segment


class PatientOrder(ReadyOrder):
    """Knows since when every segment with work has waited: since it got some, or since its last turn."""

    def __init__(self, policy: Policy, segments: Sequence[Segment], ledger: Ledger, dynamic: bool = True) -> None:
        super().__init__(policy, segments, ledger, dynamic)
        self._entered = dynamic and policy.entered
        self.operations = 0  # priorities entered anew for the latest decision
        self.limited = True  # whether anybody asks how long segments have waited
        self._since: dict[int, float] = {}  # by serial: when the waiting began
        self._line: deque[tuple[float, Segment]] = deque()  # in that order; some have been served since

    def inherit(self, before: PatientOrder) -> None:
        """The plan is cut anew: who waited then has waited since."""
        since: dict[int, float] = {}  # by station, the longest
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
        """The first, having noted whose waiting begins now and whose is over."""
        if self._merges:
            self._look_up()  # what is freed by something upstream begins to wait too
        changed = {s.serial: s for queue in self._changes for s in queue.segments}
        first = self.first()
        self.operations = 0
        for serial, segment in changed.items():
            if segment.ranked is None:
                self._since.pop(serial, None)
                continue
            self.operations += self._entered
            if self.limited and serial not in self._since:
                self._wait(segment, now)
        return first

    def overdue(self, now: float, limit: float) -> Segment | None:
        """The segment that has waited longest, if that is more than the limit."""
        line = self._line
        while line:
            since, segment = line[0]
            if self._since.get(segment.serial) == since:
                return segment if now - since > limit else None
            line.popleft()
        return None

    def served(self, segment: Segment, now: float) -> None:
        """It has its turn now, and waits anew for the next."""
        if self.limited:
            self._wait(segment, now)

    def _wait(self, segment: Segment, now: float) -> None:
        self._since[segment.serial] = now
        self._line.append((now, segment))
