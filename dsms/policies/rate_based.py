"""RB-MCQ: runs the query that yields most results per unit of time first.

Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines", eq. 13. The paper does not say who goes
first among equals, which decides its figure 8: `ties`, by default the oldest tuple.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.plan.segment import Segment
from dsms.policies.query_policy import QueryPolicy, result_rate


@dataclass
class RateBased(QueryPolicy):
    name: ClassVar[str] = "rb-mcq"
    dynamic: ClassVar[bool] = False

    def priority(self, segment: Segment) -> float:
        return result_rate(segment)
