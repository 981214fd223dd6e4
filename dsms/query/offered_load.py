"""The load that streams offer to the CPU: the time one tuple takes in all operators, and the utilisation by rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsms.errors import PlanError, existing
from dsms.operators.reorder import ReorderOperator
from dsms.plan.estimate import declared_estimate
from dsms.plan.graph import Plan, Station, Stream


def work_per_tuple(plan: Plan, streams: Iterable[str] | None = None) -> dict[str, float]:
    """The expected CPU time of one tuple of each stream, from declared costs and selectivities.

    A station that several queries read counts once. At a join, a tuple costs what the join declares, and yields as many
    tuples as its selectivity says (Babcock et al., "Chain", section 4.3). Start-up is spread over the tuples of a run.
    Cost factors of single tuples are not counted. Streams whose load is unknown are left out, or refused if they are in
    `streams`.
    """
    ahead: list[float | None] = [None] * len(plan.stations)  # by station: the time of one tuple there and downstream
    for station in reversed(plan.stations):
        known, behind = declared_estimate(station), _sum_consumer_work(ahead, station)
        if _has_declared_cost(station) and behind is not None:
            ahead[station.index] = known.cost + known.selectivity * behind
    every = {stream.name: stream for stream in plan.streams}
    found = {name: work for name, stream in every.items() if (work := _sum_consumer_work(ahead, stream))}
    if streams is None:
        return found
    for name in streams:
        if name not in every:
            raise PlanError(f"no stream {name!r}{existing(name, every)}", file=plan.name)
        if name not in found:
            raise PlanError(_explain_unknown_cost(every[name]), f"streams.{name}", plan.name)
    return {name: found[name] for name in streams}


def utilisation(plan: Plan, rates: Mapping[str, float], budget: float = 1.0) -> float:
    """The share of the CPU that streams of these rates use together; `budget` is how much of a CPU there is."""
    return sum(rates[name] * work for name, work in work_per_tuple(plan, rates).items()) / budget


def _sum_consumer_work(ahead: list[float | None], producer: Stream | Station) -> float | None:
    """The time of one tuple in all consumers; None if it is unknown for one of them."""
    total = 0.0
    for consumer in producer.consumers:
        work = ahead[consumer.index]
        if work is None:
            return None
        total += work
    return total


def _has_declared_cost(station: Station) -> bool:
    """Whether the cost is declared; reordering, whose cost is never declared, is nearly free."""
    return station.operator.has_declared_cost or isinstance(station.operator, ReorderOperator)


def _explain_unknown_cost(stream: Stream) -> str:
    """Why the load of this stream is unknown."""
    reached: dict[str, Station] = {}
    ahead = list(stream.consumers)
    while ahead:
        station = ahead.pop()
        if station.name not in reached:
            reached[station.name] = station
            ahead += station.consumers
    undeclared = sorted(name for name, station in reached.items() if not _has_declared_cost(station))
    if undeclared:
        reason = f"its tuples reach operators without a declared cost ({', '.join(undeclared[:5])})"
    else:
        reason = "no operator reads it"
    return f"{reason}: no rate can be computed from a utilisation; give a `rate`"
