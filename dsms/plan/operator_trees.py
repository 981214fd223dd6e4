"""Converts a plan to operator trees, the input of the progress charts, and counts the operators on its paths."""

from __future__ import annotations

from collections.abc import Callable

from dsms.charts import OperatorTree
from dsms.plan.estimate import Estimate
from dsms.plan.graph import Plan
from dsms.plan.station import Station


def build_trees(
    plan: Plan,
    estimate_of: Callable[[Station], Estimate],
    cost: Callable[[Estimate], float] = lambda estimate: estimate.cost,
    size: Callable[[Station], float] = lambda station: station.size,
) -> list[OperatorTree[Station]]:
    """Return, by station index, each station with everything downstream of it as a tree."""
    reversed_trees: list[OperatorTree[Station]] = []
    for station in reversed(plan.stations):
        estimate = estimate_of(station)
        branches = [reversed_trees[len(plan.stations) - 1 - consumer.index] for consumer in station.consumers]
        tree = OperatorTree(station, cost(estimate), estimate.selectivity, size(station), station.sink, branches)
        reversed_trees.append(tree)
    return reversed_trees[::-1]


def count_path_operators(plan: Plan) -> int:
    """Return how many operators the paths of the plan have together; one on several paths counts several times."""
    sizes = [1] * len(plan.stations)
    for station in reversed(plan.stations):
        sizes[station.index] += sum(sizes[consumer.index] for consumer in station.consumers)
    return sum(sizes[station.index] for stream in plan.streams for station in stream.consumers)
