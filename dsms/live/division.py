"""Which queries go to which domain: those that share work stay together, the others are spread by what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from dsms.errors import PlanError, existing
from dsms.plan import Plan, Station
from dsms.statistics import Statistics


def divided(plan: Plan, domains: int) -> list[list[str]]:
    """The queries of each domain: groups that hang together, the dearest first, each to where there is least work."""
    spread: list[list[str]] = [[] for _ in range(domains)]
    work = [0.0] * domains
    cost = _costs(plan)
    groups = [(sum(cost[name] for name in group), group) for group in _groups(plan)]
    for wanted, group in sorted(groups, key=lambda entry: -entry[0]):  # equal ones as they stand in the plan
        least = work.index(min(work))
        spread[least] += group
        work[least] += wanted
    places = {query.name: query.index for query in plan.queries}
    return [sorted(names, key=places.__getitem__) for names in spread]


def together(plan: Plan, query: str) -> list[str]:
    """The queries that must be where this one is, itself among them."""
    for group in _groups(plan):
        if query in group:
            return group
    raise PlanError(f"no query {query!r}{existing(query, [q.name for q in plan.queries])}", file=plan.name)


def home(plan: Plan, fresh: Collection[str], where: Mapping[str, str], domains: Iterable[str]) -> str:
    """The domain for queries that come: where most are that must be with them, else where the fewest stations are."""
    near = {name for one in fresh for name in together(plan, one)} & where.keys()
    if near:
        count = Counter(where[name] for name in near)
        return max(sorted(count), key=count.__getitem__)
    work = dict.fromkeys(domains, 0)
    for query in plan.queries:
        if query.name in where:
            work[where[query.name]] += len(query.stations)
    return min(work, key=work.__getitem__)


def _groups(plan: Plan) -> list[list[str]]:
    """The queries that share stations or read each other, in plan order."""
    group = {query.name: {query.name} for query in plan.queries}
    for station in plan.stations:
        shared = [producer for producer in station.inputs if isinstance(producer, Station)]
        names = {station.query.name, *(producer.query.name for producer in shared)}
        joined = set().union(*(group[name] for name in names))
        group.update(dict.fromkeys(joined, joined))
    found = {id(names): [q.name for q in plan.queries if q.name in names] for names in group.values()}
    return list(found.values())


def _costs(plan: Plan) -> dict[str, float]:
    """By query, what it is expected to take of a CPU; where nothing is declared, by how many stations it has."""
    rates = [1.0 if stream.arrivals is None else stream.arrivals(plan.settings.seed).rate for stream in plan.streams]
    known, costs = Statistics(plan, rates), dict.fromkeys((query.name for query in plan.queries), 0.0)
    for station in plan.stations:
        estimate = known.of(station)
        costs[station.query.name] += estimate.cost * (sum(estimate.inflows) if station.operator.declared else 1.0)
    return costs
