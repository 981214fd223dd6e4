"""How much an operator-level policy takes at once: Raindrop's workload rule.

Sutherland, Raindrop thesis: with N tuples queued and A = N·RATIO, dequeue A where A > THRESHOLD, else all N. The
thesis does not say how A is rounded: down here, to at least 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dsms.errors import PolicyError
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.segment import Segment, Share


def workload(queued: float, ratio: float, threshold: float) -> int:
    """How many of the queued tuples one run takes."""
    part = queued * ratio
    return max(1, math.floor(part if part > threshold else queued))


@dataclass
class OperatorLevel(Policy):
    """A policy that schedules single operators."""

    ratio: float | None = None  # give either for Raindrop's workload rule
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.ratio is not None and not 0 < self.ratio <= 1:
            raise PolicyError(f"{self.name}: ratio is {self.ratio}: a number above 0 and up to 1 is wanted")
        if self.threshold is not None and not self.threshold >= 0:
            raise PolicyError(f"{self.name}: threshold is {self.threshold}: a number from 0 is wanted")

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_operator()

    def shares(self) -> bool:
        return self.ratio is not None or self.threshold is not None

    def share(self, segment: Segment) -> Share | None:
        ratio = 0.3 if self.ratio is None else self.ratio
        return Share(workload(segment.pending, ratio, 50.0 if self.threshold is None else self.threshold), math.inf)
