"""RB-MCQ: run first the query that yields most results per unit of time.

Sharaf, Chrysanthis, Labrinidis: "Tuning QoD in Stream Processing Engines", eq. 13. The paper does not say who goes
first among equals, which decides its figure 8: `ties`, by default the oldest tuple.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.policies.by_query import QueryLevel, rate
from dsms.segment import Segment


@dataclass
class RateBased(QueryLevel):
    name: ClassVar[str] = "rb-mcq"
    dynamic: ClassVar[bool] = False

    def priority(self, segment: Segment) -> float:
        return rate(segment)
