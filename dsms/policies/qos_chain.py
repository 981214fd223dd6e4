"""QoS-Chain (ours): Chain that weighs pending results (delay) as well as queued tuples (memory).

By Little's law delay is a holding cost as memory is. A tuple before operator j of a path j..m occupies 1 and is, with
chance P_j = s_j⋯s_m, a pending result: it costs 1 + γ·P_j a unit of time. The most that a unit of work can save is
the slope of the steepest path onwards,

    I_j = max( max_{k<m} (1 − s_j⋯s_k)/T_jk , (1 + γ·P_j)/T_jm ),   T_jk = c_j + s_j·c_{j+1} + … up to k,

and the ready operator with the highest index runs. γ = 0 is Chain on the rest of each tuple's path, a large γ the
highest output rate. γ = (w_D/Q)/(w_M/M) by the QoS weights of delay and memory, where M is what is queued and Q the
results expected of it when a policy minimises only one of them (`result_worth.py`): one percent of either then counts
by its weight. A weight on the output rate changes nothing, because all policies that do not idle have the same rate,
apart from start-ups; where memory has no weight, γ is large. On forks the index is that of the steepest chart of
everything behind the operator, as in chart partitioning: readers of a shared tuple run together, as the last of them
frees it, unless one does better alone; a join takes the index of the path by which most of its tuples come. Where a
run has a start-up cost, the index is lowered by the part of the turn that this takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from dsms.charts import Forks, weighted_indices
from dsms.config.qos import DEFAULT
from dsms.engine.engine import Engine
from dsms.engine.policy import Policy, limits_turns
from dsms.engine.statistics import Statistics
from dsms.errors import PolicyError
from dsms.plan.graph import Plan
from dsms.plan.operator_trees import build_trees
from dsms.plan.segment import Segment
from dsms.policies.chart_policy import ChartPolicy, require_few_paths, segment_with_slope
from dsms.policies.fifo import Fifo
from dsms.policies.mtiq import MostTuplesInQueue
from dsms.policies.result_worth import ResultWorth, initial_worth
from dsms.policies.workload_rule import OperatorPolicy

GAMMA_LIMIT = 1e9  # gamma where memory has no weight


@dataclass
class QosChain(ChartPolicy, OperatorPolicy):
    name: ClassVar[str] = "qos-chain"
    dynamic: ClassVar[bool] = True  # if there are start-up costs; see is_dynamic

    gamma: float | None = None  # None: from the weights below, and these from the plan's QoS
    memory: float | None = None
    delay: float | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = [weight for weight in (self.memory, self.delay, self.rate) if weight is not None]
        if self.gamma is not None and (weights or not 0 <= self.gamma < math.inf):
            raise PolicyError(
                f"qos-chain: gamma is {self.gamma}: expected a number of at least 0, and no weights with it"
            )
        if any(not 0 <= weight <= 1 for weight in weights) or (weights and not math.isclose(sum(weights), 1)):
            raise PolicyError(f"qos-chain: the weights are {weights}: expected numbers of at least 0 that sum to 1")
        self._worth: ResultWorth | None = None
        self._known: float | None = None  # the worth when the policy was last in charge
        self._engine: Engine | None = None

    def is_dynamic(self, plan: Plan) -> bool:
        return any(station.operator.startup for station in plan.stations)

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        gamma = self.compute_gamma(plan, statistics)
        self._stakes = gamma, statistics.results()
        index = self._indices(plan, statistics, gamma)
        return [segment_with_slope((station,), index[station.index]) for station in plan.stations]

    def priority(self, segment: Segment) -> float:
        startup = segment.stations[0].operator.startup
        if not startup or not segment.next_cost:
            return segment.slope
        # Only part of a turn is useful work; it grows with the backlog, up to what a turn takes. Squared, because the
        # turn itself earns less by this factor and the start-up also delays all other segments.
        tuples, time = segment.limit if not limits_turns(self) else (math.inf, math.inf)
        work = min(segment.pending * segment.next_cost, tuples * segment.next_cost, time)
        useful = work / (work + startup)
        return segment.slope * useful**2 if segment.slope > 0 else segment.slope / useful**2

    def reasons(self, segment: Segment) -> dict[str, float]:
        """Return the figures that a priority was computed from, for `dsms why`."""
        gamma, results = self._stakes
        expected = results[segment.stations[0].index]
        return {"index": segment.slope, "gamma": gamma, "results": expected, "cost": segment.next_cost}

    def compute_gamma(self, plan: Plan, statistics: Statistics) -> float:
        """Return the current γ: how many queued tuples a pending result counts as."""
        if self.gamma is not None:
            return self.gamma
        memory, delay = self._weights(plan)
        if not memory:
            return GAMMA_LIMIT
        known = self._known if self._worth is None or self._worth.tuples is None else self._worth.tuples
        return min(GAMMA_LIMIT, delay / memory * (initial_worth(plan, statistics) if known is None else known))

    def begin(self, engine: Engine) -> Policy:
        self.end(engine)  # it may be in charge already
        self._engine = engine
        if self.gamma is None:
            extremes: dict[str, Callable[[], Policy]] = {
                f"{g:g}": partial(QosChain, gamma=g) for g in (0.0, GAMMA_LIMIT)
            }
            if self.is_dynamic(engine.plan):
                extremes |= {"fifo": Fifo, "mtiq": MostTuplesInQueue}  # with start-up costs large batches may do better
            self._worth = ResultWorth(extremes, lambda: all(self._weights(engine.plan)))
            engine.watch(self._worth)
        return self

    def end(self, engine: Engine) -> None:
        if self._worth is not None:
            if self._engine is engine:  # a copy of this policy may be in charge of another engine
                engine.unwatch(self._worth)
            self._known, self._worth = self._worth.tuples or self._known, None

    def copy_for_trial(self, engine: Engine) -> Policy:
        return QosChain(self.ratio, self.threshold, self.compute_gamma(engine.plan, engine.statistics))

    def _weights(self, plan: Plan) -> tuple[float, float]:
        """Return the weights of memory and of delay."""
        if self.memory is None and self.delay is None and self.rate is None:
            qos = self._engine.control.qos if self._engine else plan.qos or DEFAULT
            # A tuple's age is the time it is held, which by Little's law is memory.
            return qos.weight_of("memory") + qos.weight_of("age"), qos.weight_of("delay")
        return self.memory or 0.0, self.delay or 0.0

    def _indices(self, plan: Plan, statistics: Statistics, gamma: float) -> dict[int, float]:
        require_few_paths(self.name, plan)
        grown = build_trees(plan, statistics.of, lambda estimate: estimate.marginal_cost or estimate.cost)
        for tree in grown:
            tree.size = 1  # the goal is few tuples, not few bytes
        forks: Forks = "shared" if plan.settings.buffers == "shared" else "private"
        found: dict[int, tuple[float, float]] = {}
        for stream in plan.streams:
            roots = [grown[station.index] for station in stream.consumers]
            ways = weighted_indices(roots, memory=1, outputs=gamma, forks=forks)
            for station, (weight, minus) in ways.items():
                way = statistics.rate(stream) * weight, minus
                found[station.index] = max(way, found.get(station.index, way))
        return {index: -minus for index, (_, minus) in found.items()}
