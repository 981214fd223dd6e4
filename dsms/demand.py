"""What streams ask of the CPU: the time that a tuple takes on all its ways, and the utilisation that rates come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsms.errors import PlanError, existing
from dsms.operators.arrange import Arrange
from dsms.plan import Plan, Station, Stream
from dsms.statistics import declared


def work_per_tuple(plan: Plan, streams: Iterable[str] | None = None) -> dict[str, float]:
    """By stream, the time that one of its tuples is expected to take, from declared costs and selectivities.

    A station that several queries read counts once; at a join a tuple takes what it takes there, whoever it meets, and
    passes on as many as the join's selectivity says (Babcock et al., "Chain", section 4.3). Start-up is spread over the
    tuples that a run takes. What tuples carry as factors of their own is not counted. Streams of which nothing can be
    said are left out, or refused if they are among those asked for.
    """
    ahead: list[float | None] = [None] * len(plan.stations)  # time from a tuple before a station on
    for station in reversed(plan.stations):
        known, behind = declared(station), _sum(ahead, station)
        if _said(station) and behind is not None:
            ahead[station.index] = known.cost + known.selectivity * behind
    every = {stream.name: stream for stream in plan.streams}
    found = {name: work for name, stream in every.items() if (work := _sum(ahead, stream))}
    if streams is None:
        return found
    for name in streams:
        if name not in every:
            raise PlanError(f"no stream {name!r}{existing(name, every)}", file=plan.name)
        if name not in found:
            raise PlanError(_unknown(every[name]), f"streams.{name}", plan.name)
    return {name: found[name] for name in streams}


def utilisation(plan: Plan, rates: Mapping[str, float], budget: float = 1.0) -> float:
    """The share of the CPU that streams of these rates take together; `budget` is how much of a CPU there is."""
    return sum(rates[name] * work for name, work in work_per_tuple(plan, rates).items()) / budget


def _sum(ahead: list[float | None], producer: Stream | Station) -> float | None:
    """What all that read a tuple take for it; None if that is not known of one of them."""
    total = 0.0
    for consumer in producer.consumers:
        work = ahead[consumer.index]
        if work is None:
            return None
        total += work
    return total


def _said(station: Station) -> bool:
    """Whether its cost is declared; putting rows in order, which nobody declares, takes next to nothing."""
    return station.operator.declared or isinstance(station.operator, Arrange)


def _unknown(stream: Stream) -> str:
    """Why it cannot be said what a tuple of this stream takes."""
    reached: dict[str, Station] = {}
    ahead = list(stream.consumers)
    while ahead:
        station = ahead.pop()
        if station.name not in reached:
            reached[station.name] = station
            ahead += station.consumers
    untold = sorted(name for name, station in reached.items() if not _said(station))
    if untold:
        said = f"its tuples come to operators without a declared cost ({', '.join(untold[:5])})"
    else:
        said = "no operator reads it"
    return f"{said}: the rate does not follow from a utilisation; give a `rate`"
