"""Per-tuple greedy: the first tuple in any queue that is done soonest, by exact knowledge of its cost. A yardstick.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", section 5: always the head of least cost; for memory, the head
that frees most per unit of time. Not optimal: a dear tuple hides the cheap ones behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsms.errors import PolicyError
from dsms.foresight import head, require_foresight
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine


@dataclass
class TupleGreedy(Policy):
    name: ClassVar[str] = "tuple-greedy"
    clairvoyant: ClassVar[bool] = True

    goal: str = "latency"  # or "memory"

    def __post_init__(self) -> None:
        if self.goal not in ("latency", "memory"):
            raise PolicyError(f"tuple-greedy: goal is {self.goal!r}: 'latency' or 'memory' is wanted")

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_tree() if self.goal == "latency" else plan.by_operator()

    def priority(self, segment: Segment) -> float:
        seen = head(segment)
        return -seen.cost if self.goal == "latency" else seen.freed / seen.cost

    def begin(self, engine: Engine) -> Policy:
        require_foresight(self.name, engine)
        return self
