"""Chain: runs the operators on the steepest part of their path's progress chart first.

Babcock et al.: "Chain: Operator Scheduling for Memory Minimization in Data Stream Systems", section 3; several streams:
section 4.3. A path is cut where the lower envelope of its chart turns; a join belongs to a chain of each stream that
leads to it, its cost and selectivity being means over its inputs by their rates. Memory is at every instant within one
tuple per path of what any schedule could have, for which it must be possible to turn to a steeper chain between two
operators: so a turn is one operator's work, and the oldest tuple of a chain, which is the furthest on, goes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.engine.policy import PolicyTraits
from dsms.engine.statistics import Statistics
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment
from dsms.policies.chart_policy import ChartPolicy, path_segments, require_few_paths
from dsms.policies.workload_rule import OperatorPolicy


@dataclass
class Chain(ChartPolicy, OperatorPolicy):
    name: ClassVar[str] = "chain"
    traits = PolicyTraits(stepwise=True)

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        require_few_paths(self.name, plan)
        return path_segments(plan.paths(), plan, statistics)
