"""Greedy: the operator that frees most memory per unit of time.

Babcock et al.: "Chain", section 3: static priority (1 − s)/t. With tuple sizes: (bytes in − s·bytes out)/t, and what
leaves through a sink occupies nothing, as in the paper's charts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.policies.workload import OperatorLevel
from dsms.segment import Segment


@dataclass
class Greedy(OperatorLevel):
    name: ClassVar[str] = "greedy"
    dynamic: ClassVar[bool] = False

    def priority(self, segment: Segment) -> float:
        return float(f"{segment.freed / segment.mean_cost:.12g}")  # so that equal ones do not differ by rounding
