"""MTIQ: the operator with the most tuples in its input queues.

Sutherland, Raindrop thesis, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.policies.workload import OperatorLevel
from dsms.segment import Segment


@dataclass
class MostTuplesInQueue(OperatorLevel):
    name: ClassVar[str] = "mtiq"

    def priority(self, segment: Segment) -> float:
        return round(segment.pending, 9)  # ten tenths of a tuple are as much as a whole one
