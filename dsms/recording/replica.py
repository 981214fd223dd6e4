"""The plan of a recorded run in abstract tuples: its graph, with the costs and selectivities that were measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dsms.arrivals import Arrivals, Listed
from dsms.errors import DsmsError
from dsms.operators import Abstract
from dsms.operators.base import MOST
from dsms.plan import Plan, Query, Station, Stream
from dsms.qos import Qos
from dsms.recording.measured import Done, Measured
from dsms.recording.recording import Recording
from dsms.recording.stretch import Floats
from dsms.selection.shadow import LEAST
from dsms.settings import Settings

NEVER = Done()


def replica(recording: Recording, measured: Measured, until: float, listed: bool) -> Plan:
    """A plan like the recorded one; `listed`: the arrivals up to an instant are in it, row by row.

    Queries that came or went while it ran are there all the time, and an operator with state passes on what it did on
    average.
    """
    about = recording.about
    arrivals = _arrivals(recording, until) if listed else {}
    streams = {
        one["name"]: Stream(one["name"], one["size"], _process(arrivals[one["name"]], one["rate"]) if listed else None)
        for one in about["streams"]
    }
    queries = {one["name"]: Query(one["name"], one["weight"]) for one in about["queries"]}
    stations: dict[str, Station] = {}
    for one in about["stations"]:
        operator = _operator(one, measured.stations.get(one["name"], NEVER))
        stations[one["name"]] = Station(one["name"], queries[one["query"]], operator)
        queries[one["query"]].stations.append(stations[one["name"]])
    for one in about["stations"]:
        stations[one["name"]].inputs = tuple(_producer(name, streams, stations, recording) for name in one["inputs"])
    settings = {**about["settings"], "slice": about["slice"], "until": None}
    return Plan(
        list(streams.values()),
        list(stations.values()),
        list(queries.values()),
        Settings(**settings),
        about["plan"],
        None if about["qos"] is None else Qos.of(about["qos"]),
        about.get("adaptive") or {},
    )


def _operator(one: Mapping[str, Any], done: Done) -> Abstract:
    startup, query = one["startup"], one["query"]
    name = (
        f"{query}.{one['name'].removeprefix(query + '.')}"  # as plans call it: of simulated tuples the same ones pass
    )
    if not done.taken:  # it never ran: what was declared is all there is
        return Abstract(one["cost"], one["selectivity"], startup, one["take"], one["size"], name)
    cost = done.cost_each(startup)
    cost = cost if startup else max(cost, LEAST)
    return Abstract(cost, min(done.made / done.taken, MOST), startup, one["take"], one["size"], name)


def _producer(
    name: str, streams: Mapping[str, Stream], stations: Mapping[str, Station], recording: Recording
) -> Stream | Station:
    found = streams.get(name) or stations.get(name)
    if found is None:
        raise DsmsError(f"{recording.folder}: a station reads from {name!r}, of which it says nothing")
    return found


def _arrivals(recording: Recording, until: float) -> dict[str, Floats]:
    """By stream, the instants at which rows were admitted, one each."""
    found: dict[str, list[Floats]] = {one["name"]: [] for one in recording.about["streams"]}
    for part in recording.table("arrivals", "at", "stream", "rows"):
        codes, names = part["stream"]
        for place, name in enumerate(names):
            mine = (codes == place) & (part["at"] <= until)
            found[name].append(np.repeat(part["at"][mine], part["rows"][mine]))
    return {name: np.concatenate([np.empty(0), *parts]) for name, parts in found.items()}


def _process(at: Floats, rate: float) -> Callable[[int], Arrivals]:
    def process(seed: int) -> Arrivals:
        listed = Listed(at, {})
        listed.rate = rate or listed.rate  # policies cut by what was known of it then
        return listed

    return process
