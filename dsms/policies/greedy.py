"""Greedy: runs the operator that frees most memory per unit of time.

Babcock et al.: "Chain", section 3: static priority (1 − s)/t. With tuple sizes: (bytes in − s·bytes out)/t, and what
leaves through a sink occupies nothing, as in the paper's charts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.plan.segment import Segment
from dsms.policies.workload_rule import OperatorPolicy


@dataclass
class Greedy(OperatorPolicy):
    name: ClassVar[str] = "greedy"
    dynamic: ClassVar[bool] = False

    def priority(self, segment: Segment) -> float:
        return float(f"{segment.freed / segment.mean_cost:.12g}")  # rounded, so that equal priorities compare equal
