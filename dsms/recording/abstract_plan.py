"""Makes a plan of abstract operators from a recording: the recorded graph with measured costs and selectivities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dsms.arrivals import Arrivals, ListedArrivals
from dsms.config.qos import Qos
from dsms.config.run import Settings
from dsms.errors import DsmsError
from dsms.operators import AbstractOperator
from dsms.operators.base import MAX_SELECTIVITY
from dsms.plan.graph import Plan, Query, Station, Stream
from dsms.policies.adaptive.shadow_plan import MIN_COST
from dsms.recording.measured_costs import RecordedWork, StationWork
from dsms.recording.recording import Recording
from dsms.recording.table_buffer import Floats

NO_WORK = StationWork()


def build_replica_plan(recording: Recording, measured: RecordedWork, until: float, listed: bool) -> Plan:
    """Make a plan like the recorded one; with `listed`, it contains the arrivals up to an instant, row by row.

    Queries that were added or removed during the run are present all the time. An operator with state has its average
    selectivity.
    """
    about = recording.about
    arrivals = _read_arrivals(recording, until) if listed else {}
    streams = {
        one["name"]: Stream(
            one["name"], one["size"], _make_arrival_process(arrivals[one["name"]], one["rate"]) if listed else None
        )
        for one in about["streams"]
    }
    queries = {one["name"]: Query(one["name"], one["weight"]) for one in about["queries"]}
    stations: dict[str, Station] = {}
    for one in about["stations"]:
        operator = _make_operator(one, measured.stations.get(one["name"], NO_WORK))
        stations[one["name"]] = Station(one["name"], queries[one["query"]], operator)
        queries[one["query"]].stations.append(stations[one["name"]])
    for one in about["stations"]:
        stations[one["name"]].inputs = tuple(
            _find_producer(name, streams, stations, recording) for name in one["inputs"]
        )
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


def _make_operator(one: Mapping[str, Any], done: StationWork) -> AbstractOperator:
    startup, query = one["startup"], one["query"]
    # The name that plans use seeds the selectivity: the same simulated tuples pass.
    name = f"{query}.{one['name'].removeprefix(query + '.')}"
    if not done.taken:  # it never ran: only the declared figures are known
        return AbstractOperator(one["cost"], one["selectivity"], startup, one["take"], one["size"], name)
    cost = done.cost_each(startup)
    cost = cost if startup else max(cost, MIN_COST)
    return AbstractOperator(cost, min(done.made / done.taken, MAX_SELECTIVITY), startup, one["take"], one["size"], name)


def _find_producer(
    name: str, streams: Mapping[str, Stream], stations: Mapping[str, Station], recording: Recording
) -> Stream | Station:
    producer = streams.get(name) or stations.get(name)
    if producer is None:
        raise DsmsError(f"{recording.folder}: an operator reads from {name!r}, which the recording does not describe")
    return producer


def _read_arrivals(recording: Recording, until: float) -> dict[str, Floats]:
    """By stream: the instant at which each row was admitted."""
    found: dict[str, list[Floats]] = {one["name"]: [] for one in recording.about["streams"]}
    for part in recording.table("arrivals", "at", "stream", "rows"):
        codes, names = part["stream"]
        for place, name in enumerate(names):
            mine = (codes == place) & (part["at"] <= until)
            found[name].append(np.repeat(part["at"][mine], part["rows"][mine]))
    return {name: np.concatenate([np.empty(0), *parts]) for name, parts in found.items()}


def _make_arrival_process(at: Floats, rate: float) -> Callable[[int], Arrivals]:
    def process(seed: int) -> Arrivals:
        listed = ListedArrivals(at, {})
        listed.rate = rate or listed.rate  # policies decide by the rate that was known then
        return listed

    return process
