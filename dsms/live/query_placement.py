"""Assigns queries to domains: queries that share operators stay together, the rest is balanced by cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from dsms.engine.statistics import Statistics
from dsms.errors import PlanError, existing
from dsms.plan.graph import Plan, Station


def place_queries(plan: Plan, domains: int) -> list[list[str]]:
    """The queries of each domain: groups in order of falling cost, each to the domain with the least work."""
    spread: list[list[str]] = [[] for _ in range(domains)]
    work = [0.0] * domains
    cost = _estimate_costs(plan)
    groups = [(sum(cost[name] for name in group), group) for group in _group_queries(plan)]
    for group_cost, group in sorted(groups, key=lambda entry: -entry[0]):  # ties in plan order
        least = work.index(min(work))
        spread[least] += group
        work[least] += group_cost
    places = {query.name: query.index for query in plan.queries}
    return [sorted(names, key=places.__getitem__) for names in spread]


def find_colocated(plan: Plan, query: str) -> list[str]:
    """The queries that must run in the same domain as this one, itself included."""
    for group in _group_queries(plan):
        if query in group:
            return group
    raise PlanError(f"no query {query!r}{existing(query, [q.name for q in plan.queries])}", file=plan.name)


def choose_domain(plan: Plan, fresh: Collection[str], where: Mapping[str, str], domains: Iterable[str]) -> str:
    """The domain for new queries: with most of their colocated queries, else with the fewest stations."""
    near = {name for one in fresh for name in find_colocated(plan, one)} & where.keys()
    if near:
        count = Counter(where[name] for name in near)
        return max(sorted(count), key=count.__getitem__)
    work = dict.fromkeys(domains, 0)
    for query in plan.queries:
        if query.name in where:
            work[where[query.name]] += len(query.stations)
    return min(work, key=work.__getitem__)


def _group_queries(plan: Plan) -> list[list[str]]:
    """The queries that share stations or read each other, in plan order."""
    group = {query.name: {query.name} for query in plan.queries}
    for station in plan.stations:
        shared = [producer for producer in station.inputs if isinstance(producer, Station)]
        names = {station.query.name, *(producer.query.name for producer in shared)}
        joined = set().union(*(group[name] for name in names))
        group.update(dict.fromkeys(joined, joined))
    found = {id(names): [q.name for q in plan.queries if q.name in names] for names in group.values()}
    return list(found.values())


def _estimate_costs(plan: Plan) -> dict[str, float]:
    """The expected CPU use of each query; without declared costs, its number of stations."""
    rates = [1.0 if stream.arrivals is None else stream.arrivals(plan.settings.seed).rate for stream in plan.streams]
    known, costs = Statistics(plan, rates), dict.fromkeys((query.name for query in plan.queries), 0.0)
    for station in plan.stations:
        estimate = known.of(station)
        inflow = sum(estimate.inflows) if station.operator.has_declared_cost else 1.0
        costs[station.query.name] += estimate.cost * inflow
    return costs
