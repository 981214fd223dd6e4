"""FAS-gamma, ours: freshness plus gamma times rate.

V = α·(1 − (1 − S)^N)/(N·C) + γ·S/C. FAS-MCQ's beta bends the backlog itself, so a query with a long one is left waiting
at every beta above 0; here a part of every query's priority does not depend on its backlog. gamma = 0 is FAS-MCQ, a
large one RB-MCQ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dsms.errors import PolicyError
from dsms.policies.by_query import QueryLevel, rate, stale_chance
from dsms.segment import Segment


@dataclass
class FreshnessAndRate(QueryLevel):
    name: ClassVar[str] = "fas-gamma"

    gamma: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.gamma < math.inf:
            raise PolicyError(f"fas-gamma: gamma is {self.gamma}: a number from 0 is wanted")

    def priority(self, segment: Segment) -> float:
        pending = segment.pending
        fresh = segment.weight * stale_chance(segment, pending) / (pending * segment.mean_cost)
        return fresh + self.gamma * rate(segment)
