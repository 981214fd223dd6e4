"""Component-based: runs the connected operators with the highest output rate first, each tuple through all of them.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", sections 2 and 3: rate R = sigma/tau; a component acts as one
operator with its average time and selectivity. The paper has no slice; one may stop a tuple between two operators, and
the component's next turn continues with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.engine.policy import Policy
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment


@dataclass
class Component(Policy):
    name: ClassVar[str] = "component"
    dynamic: ClassVar[bool] = False

    def segments(self, plan: Plan) -> list[Segment]:
        # If each reader has its own copy, a common stream does not connect them.
        shared = plan.settings.buffers == "shared"
        return [Segment(tuple(members)) for members in plan.components(streams=shared)]

    def priority(self, segment: Segment) -> float:
        return segment.selectivity / segment.mean_cost
