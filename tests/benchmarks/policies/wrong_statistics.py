"""Gives a policy wrong costs and selectivities, while the plan runs with the true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dsms.engine.policy import Policy, StatefulPolicy, as_stateful
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment

if TYPE_CHECKING:
    from dsms.engine.engine import Engine


class MisledPolicy(StatefulPolicy):
    """Delegates to another policy, each of whose statistics is off by a factor drawn from 1 ± error."""

    name: ClassVar[str] = "misled"

    def __init__(self, policy: Policy, error: float, seed: int = 0) -> None:
        self._policy, self._error, self._seed = policy, error, seed

    def begin(self, engine: Engine) -> Policy:
        draw = np.random.default_rng(self._seed).uniform
        for station in engine.plan.stations:
            known, (cost, selectivity) = engine.statistics.of(station), draw(1 - self._error, 1 + self._error, 2)
            known.cost *= cost
            known.marginal_cost *= cost
            known.selectivity = min(1.0, known.selectivity * selectivity)  # a filter passes at most all tuples
        return as_stateful(self._policy).begin(engine)

    def segments(self, plan: Plan) -> list[Segment]:
        return self._policy.segments(plan)

    def priority(self, segment: Segment) -> float:
        return self._policy.priority(segment)
