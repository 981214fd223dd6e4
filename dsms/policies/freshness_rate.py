"""FAS-gamma (ours): runs the query with the highest freshness priority plus gamma times its output rate.

V = α·(1 − (1 − S)^N)/(N·C) + γ·S/C. FAS-MCQ's beta bends the backlog itself, so a query with a long one is left waiting
at every beta above 0; here a part of every query's priority does not depend on its backlog. gamma = 0 is FAS-MCQ, a
large one RB-MCQ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dsms.errors import PolicyError
from dsms.plan.segment import Segment
from dsms.policies.query_policy import QueryPolicy, result_rate, stale_probability


@dataclass
class FreshnessAndRate(QueryPolicy):
    name: ClassVar[str] = "fas-gamma"

    gamma: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.gamma < math.inf:
            raise PolicyError(f"fas-gamma: gamma is {self.gamma}: expected a number of at least 0")

    def priority(self, segment: Segment) -> float:
        pending = segment.pending
        fresh = segment.weight * stale_probability(segment, pending) / (pending * segment.mean_cost)
        return fresh + self.gamma * result_rate(segment)
