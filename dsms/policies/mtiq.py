"""MTIQ: runs the operator with the most tuples in its input queues.

Sutherland, Raindrop thesis, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.plan.segment import Segment
from dsms.policies.workload_rule import OperatorPolicy


@dataclass
class MostTuplesInQueue(OperatorPolicy):
    name: ClassVar[str] = "mtiq"

    def priority(self, segment: Segment) -> float:
        return round(segment.pending, 9)  # ten tenths of a tuple equal a whole one
