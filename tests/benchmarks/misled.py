"""A policy that is told wrong costs and selectivities, while the plan runs with the true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine


class Misled(Policy):
    """Puts another in charge, of whose statistics each is off by a factor drawn from 1 ± error."""

    name: ClassVar[str] = "misled"

    def __init__(self, policy: Policy, error: float, seed: int = 0) -> None:
        self._policy, self._error, self._seed = policy, error, seed

    def begin(self, engine: Engine) -> Policy:
        draw = np.random.default_rng(self._seed).uniform
        for station in engine.plan.stations:
            known, (cost, selectivity) = engine.statistics.of(station), draw(1 - self._error, 1 + self._error, 2)
            known.cost *= cost
            known.each *= cost
            known.selectivity = min(1.0, known.selectivity * selectivity)  # nobody believes more of a filter
        return self._policy.begin(engine)

    def segments(self, plan: Plan) -> list[Segment]:
        return self._policy.segments(plan)

    def priority(self, segment: Segment) -> float:
        return self._policy.priority(segment)
