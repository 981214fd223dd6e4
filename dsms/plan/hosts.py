"""Decides which stations share a host, for a deployment and for the simulation of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from dsms.errors import DsmsError
from dsms.plan.graph import Plan, Station


def group_stations(stations: Sequence[Station], most: int) -> list[list[str]]:
    """Return the names of the stations of each host: one station each, up to `most` hosts.

    Beyond that, stations are spread evenly; those of a query stay together, in the plan's order.

    `DEFAULT_ACTORS` is 24, measured on two cores: an idle actor takes some 50 MB (PSS) and 1 s of a CPU to
    start. So 24 are ready in less than a minute; one for each of 750 stations would take 40 GB and 10 minutes.
    """
    if most < 1:
        raise DsmsError(f"{most} actors for {len(stations)} stations: expected at least one")
    ordered = sorted(stations, key=lambda station: (station.query.index, station.index))
    actors = max(1, min(most, len(ordered)))
    bounds = [place * len(ordered) // actors for place in range(actors + 1)]
    return [[station.name for station in ordered[start:end]] for start, end in pairwise(bounds)]


def number_hosts(plan: Plan, places: Mapping[str, int]) -> list[int]:
    """Return the number of each station's host, by index; without places, as the plan's `[live]` table deploys it."""
    if not places:
        groups = group_stations(plan.stations, plan.live.actors)
        places = {name: place for place, names in enumerate(groups) for name in names}
    return [places[station.name] for station in plan.stations]
