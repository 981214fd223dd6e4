"""QoS-Chain, ours: Chain where a waiting result costs something as well as a waiting tuple.

By Little's law delay is a holding cost as memory is. A tuple before operator j of a path j..m occupies 1 and is, with
chance P_j = s_j⋯s_m, a result that somebody waits for: it costs 1 + γ·P_j a unit of time. What may be saved per unit of
work is the slope of the steepest way on,

    I_j = max( max_{k<m} (1 − s_j⋯s_k)/T_jk , (1 + γ·P_j)/T_jm ),   T_jk = c_j + s_j·c_{j+1} + … up to k,

and the ready operator with the highest index runs. γ = 0 is Chain on what remains of each tuple's way, a large γ the
highest output rate. γ = (w_D/Q)/(w_M/M) by the QoS weights of delay and memory, where M is what is queued and Q the
results expected of it when either is cared for alone (`exchange.py`): a percent of either is then worth what its weight
says. A weight on the output rate moves nothing, as over any length of time that is the same for all who do not idle,
start-ups apart; but where memory has no weight, γ is large. On forks the index is that of the steepest chart of
everything behind the operator, as in chart partitioning: readers of a shared tuple go together, as the last of them
frees it, but for those that do better alone; a join goes by the way that most of its tuples come. Where a run has a
start-up cost, the index counts for less the more of the turn that would be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from dsms.charts import Forks, weighted_indices
from dsms.errors import PolicyError
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.policies.by_chart import ByChart, require_few_ways, steep, trees
from dsms.policies.exchange import Exchange, guess
from dsms.policies.fifo import Fifo
from dsms.policies.mtiq import MostTuplesInQueue
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
    dynamic: ClassVar[bool] = True  # where there are start-ups

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
        self._exchange: Exchange | None = None
        self._known: float | None = None  # the rate as it was when another took over
        self._engine: Engine | None = None

    def by_backlog(self, plan: Plan) -> bool:
        return any(station.operator.startup for station in plan.stations)

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        gamma = self.rated(plan, statistics)
        self._stakes = gamma, statistics.results()
        index = self._indices(plan, statistics, gamma)
        return [steep((station,), index[station.index]) for station in plan.stations]

    def priority(self, segment: Segment) -> float:
        startup = segment.stations[0].operator.startup
        if not startup or not segment.next_cost:
            return segment.slope
        # Of a turn's time only so much is work; the more is queued, up to what a turn takes, the more of it. Squared:
        # the turn earns by so much less, and by so much less is left for all others that wait.
        tuples, time = segment.limit if not self.shares() else (math.inf, math.inf)
        work = min(segment.pending * segment.next_cost, tuples * segment.next_cost, time)
        useful = work / (work + startup)
        return segment.slope * useful**2 if segment.slope > 0 else segment.slope / useful**2

    def reasons(self, segment: Segment) -> dict[str, float]:
        """What a priority was made of, for those who ask."""
        gamma, results = self._stakes
        expected = results[segment.stations[0].index]
        return {"index": segment.slope, "gamma": gamma, "results": expected, "cost": segment.next_cost}

    def rated(self, plan: Plan, statistics: Statistics) -> float:
        """γ as things stand: how many waiting tuples a waiting result counts as."""
        if self.gamma is not None:
            return self.gamma
        memory, delay = self._weights(plan)
        if not memory:
            return VAST
        known = self._known if self._exchange is None or self._exchange.rate is None else self._exchange.rate
        return min(VAST, delay / memory * (guess(plan, statistics) if known is None else known))

    def begin(self, engine: Engine) -> Policy:
        self.end(engine)  # it may be put in charge again
        self._engine = engine
        if self.gamma is None:
            extremes: dict[str, Callable[[], Policy]] = {f"{g:g}": partial(QosChain, gamma=g) for g in (0.0, VAST)}
            if self.by_backlog(engine.plan):
                extremes |= {"fifo": Fifo, "mtiq": MostTuplesInQueue}  # with start-ups large batches may do better
            self._exchange = Exchange(extremes, lambda: all(self._weights(engine.plan)))
            engine.watch(self._exchange)
        return self

    def end(self, engine: Engine) -> None:
        if self._exchange is not None:
            if self._engine is engine:  # not of one that another, like it, is still in charge of
                engine.unwatch(self._exchange)
            self._known, self._exchange = self._exchange.rate or self._known, None

    def tried(self, engine: Engine) -> Policy:
        return QosChain(self.ratio, self.threshold, self.rated(engine.plan, engine.statistics))

    def _weights(self, plan: Plan) -> tuple[float, float]:
        """Of memory and of delay."""
        if self.memory is None and self.delay is None and self.rate is None:
            qos = self._engine.qos if self._engine else plan.qos or DEFAULT
            # A tuple's age is the time it is held: by Little's law, memory.
            return qos.weight_of("memory") + qos.weight_of("age"), qos.weight_of("delay")
        return self.memory or 0.0, self.delay or 0.0

    def _indices(self, plan: Plan, statistics: Statistics, gamma: float) -> dict[int, float]:
        require_few_ways(self.name, plan)
        grown = trees(plan, statistics, lambda known: known.each or known.cost)
        for tree in grown:
            tree.size = 1  # what is asked for is few tuples, not few bytes
        forks: Forks = "shared" if plan.settings.buffers == "shared" else "private"
        found: dict[int, tuple[float, float]] = {}
        for stream in plan.streams:
            roots = [grown[station.index] for station in stream.consumers]
            ways = weighted_indices(roots, memory=1, outputs=gamma, forks=forks)
            for station, (weight, minus) in ways.items():
                way = statistics.rate(stream) * weight, minus
                found[station.index] = max(way, found.get(station.index, way))
        return {index: -minus for index, (_, minus) in found.items()}
