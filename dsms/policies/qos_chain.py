"""QoS-Chain, ours: Chain where a waiting result costs something as well as a waiting tuple.

By Little's law delay is a holding cost as memory is. A tuple before operator j of a path j..m occupies 1 and is, with
chance P_j = s_j⋯s_m, a result that somebody waits for: it costs 1 + γ·P_j a unit of time. What may be saved per unit of
work is the slope of the steepest way on,

    I_j = max( max_{k<m} (1 − s_j⋯s_k)/T_jk , (1 + γ·P_j)/T_jm ),   T_jk = c_j + s_j·c_{j+1} + … up to k,

and the ready operator with the highest index runs. γ = 0 is Chain on what remains of each tuple's way, a large γ the
highest output rate. γ = (w_D/Q̄ + w_R/O)/(w_M/M̄) by the QoS weights of delay, rate and memory: a percent of either is
then worth as much as its weight says, M̄ and Q̄ being the running means of what is queued and of the results expected
of it, O the results that have left, or Q̄ while that is more. One result fewer pending is 1/Q̄ of the delay, but only
1/O of the output rate: whoever is never idle puts out as much as another but for what is pending, so that no memory
is to be spent on rate, except at first and under a load that cannot be borne. On forks the index is that of the
steepest chart of everything behind the operator, as in chart partitioning, each reader of a shared tuple freeing its
part; a join's figures are means over its inputs, as in Chain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsms.charts import Forks, indices
from dsms.errors import PolicyError
from dsms.plan import Plan, Station
from dsms.policies.base import Policy
from dsms.policies.by_chart import ByChart, steep, trees
from dsms.policies.holding import Holding
from dsms.policies.workload import OperatorLevel
from dsms.qos import DEFAULT
from dsms.segment import Segment
from dsms.statistics import Statistics

if TYPE_CHECKING:
    from dsms.engine import Engine

VAST = 1e9  # gamma where memory does not count at all


@dataclass
class QosChain(ByChart, OperatorLevel):
    name: ClassVar[str] = "qos-chain"

    gamma: float | None = None  # None: by these weights, and these by the plan's QoS
    memory: float | None = None
    delay: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = [weight for weight in (self.memory, self.delay, self.rate) if weight is not None]
        if self.gamma is not None and (weights or not 0 <= self.gamma < math.inf):
            raise PolicyError(f"qos-chain: gamma is {self.gamma}: a number from 0, and no weights beside it, is wanted")
        if any(not 0 <= weight <= 1 for weight in weights) or (weights and not math.isclose(sum(weights), 1)):
            raise PolicyError(f"qos-chain: the weights are {weights}: numbers from 0 that sum to 1 are wanted")
        self._holding: Holding | None = None
        self._engine: Engine | None = None

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        index = self._indices(plan, statistics, self.exchange(plan, statistics))
        return [steep((station,), index[station.index]) for station in plan.stations]

    def exchange(self, plan: Plan, statistics: Statistics) -> float:
        """γ as things stand: how many waiting tuples a waiting result counts as."""
        if self.gamma is not None:
            return self.gamma
        memory, delay, rate = self._weights(plan)
        if not memory:
            return VAST
        holding = self._holding or Holding(plan, statistics)
        return min(VAST, (delay + rate * holding.pending_part()) / memory * holding.tuples_per_result())

    def begin(self, engine: Engine) -> Policy:
        self._engine = engine
        if self.gamma is None:
            self._holding = Holding(engine.plan, engine.statistics)
            engine.watch(self._holding)
        return self

    def end(self, engine: Engine) -> None:
        if self._holding is not None:
            engine.unwatch(self._holding)
            self._holding = None

    def _weights(self, plan: Plan) -> tuple[float, float, float]:
        """Of memory, delay and rate."""
        if self.memory is None and self.delay is None and self.rate is None:
            qos = self._engine.qos if self._engine else plan.qos or DEFAULT
            memory, delay, rate = (qos.weight_of(name) for name in ("memory", "delay", "rate"))
            return (memory, delay, rate) if memory + delay + rate else (1 / 3, 1 / 3, 1 / 3)
        return self.memory or 0.0, self.delay or 0.0, self.rate or 0.0

    def _indices(self, plan: Plan, statistics: Statistics, gamma: float) -> dict[int, float]:
        grown = trees(plan, statistics)
        forks: Forks = "split" if plan.settings.buffers == "shared" else "private"
        found: dict[Station, float] = {}
        for stream in plan.streams:
            roots = [grown[station.index] for station in stream.consumers]
            found |= indices(roots, size=stream.size, memory=1, outputs=gamma, forks=forks)
        return {station.index: slope for station, slope in found.items()}
