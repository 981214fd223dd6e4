"""Component-based: the component with the highest output rate first, each tuple through all of it.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", sections 2 and 3: rate R = sigma/tau; a component acts as one
operator with its average time and selectivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.segment import Segment


@dataclass
class Component(Policy):
    name: ClassVar[str] = "component"
    dynamic: ClassVar[bool] = False

    def segments(self, plan: Plan) -> list[Segment]:
        # Where every reader has a copy of its own, a stream does not hold its readers together.
        shared = plan.settings.buffers == "shared"
        return [Segment(tuple(members)) for members in plan.components(streams=shared)]

    def priority(self, segment: Segment) -> float:
        return segment.selectivity / segment.mean_cost
