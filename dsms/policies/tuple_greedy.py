"""Per-tuple greedy: an oracle that runs the queue whose first tuple takes the least time.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", section 5: always the head of least cost; for memory, the head
that frees most per unit of time. Not optimal: a dear tuple hides the cheap ones behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.engine.engine import Engine
from dsms.engine.oracle import forecast_head, require_oracle
from dsms.engine.policy import Policy, PolicyTraits, StatefulPolicy
from dsms.errors import PolicyError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment


@dataclass
class TupleGreedy(StatefulPolicy):
    name: ClassVar[str] = "tuple-greedy"
    traits = PolicyTraits(clairvoyant=True)

    goal: str = "latency"  # or "memory"

    def __post_init__(self) -> None:
        if self.goal not in ("latency", "memory"):
            raise PolicyError(f"tuple-greedy: goal is {self.goal!r}: expected 'latency' or 'memory'")

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_tree() if self.goal == "latency" else plan.by_operator()

    def priority(self, segment: Segment) -> float:
        seen = forecast_head(segment)
        return -seen.cost if self.goal == "latency" else seen.freed / seen.cost

    def begin(self, engine: Engine) -> Policy:
        require_oracle(self.name, engine)
        return self
