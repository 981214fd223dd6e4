"""FAS-MCQ: runs first the query whose output can be made fresh soonest.

Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines", section 4 (eq. 11; weighted: eq. 12); beta:
section 5.2 (eq. 15). With N updates pending, each a result with chance S (of more than 1: 1), the stream is stale with
chance 1 − (1 − S)^N, and it takes N·C to make it fresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.errors import PolicyError
from dsms.plan.segment import Segment
from dsms.policies.query_policy import QueryPolicy, stale_probability


@dataclass
class Freshness(QueryPolicy):
    name: ClassVar[str] = "fas-mcq"

    beta: float = 1.0  # 0 ignores the backlog (rate-based), 1 weighs it in full

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta <= 1:
            raise PolicyError(f"fas-mcq: beta is {self.beta}: expected a number from 0 to 1")

    def priority(self, segment: Segment) -> float:
        pending: float = segment.pending**self.beta
        return segment.weight * stale_probability(segment, pending) / (pending * segment.mean_cost)
