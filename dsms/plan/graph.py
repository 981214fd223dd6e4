"""Plan: streams, stations and queries as one acyclic graph, and the standard ways to cut it into segments."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from dsms.config.live import LiveConfig
from dsms.config.qos import Qos
from dsms.config.run import Settings
from dsms.errors import PlanError, existing
from dsms.operators import AbstractOperator
from dsms.plan.segment import Segment
from dsms.plan.station import Query, SheddingRule, Station, Stream

__all__ = [
    "Plan",
    "Query",
    "SheddingRule",
    "Station",
    "Stream",
    "find_surviving_stations",
    "is_append_only",
    "sort_topologically",
]


@dataclass(eq=False)
class Plan:
    """All that a run needs except the policy."""

    streams: list[Stream]
    stations: list[Station]
    queries: list[Query]
    settings: Settings = field(default_factory=Settings)
    name: str = ""
    qos: Qos | None = None  # quality of service; None: the default weights
    adaptive: Mapping[str, Any] = field(default_factory=dict)  # settings of the policy `adaptive`, as written
    folder: Path = Path()  # file names in the plan are relative to it
    live: LiveConfig = field(default_factory=LiveConfig)  # deployment settings

    def __post_init__(self) -> None:
        self.stations = sort_topologically(self.stations)
        for producer in self.producers():
            producer.consumers.clear()
        for index, station in enumerate(self.stations):
            station.index = index
            for producer in station.inputs:
                producer.consumers.append(station)
            station.depth = 1 + max((p.depth for p in station.inputs if isinstance(p, Station)), default=0)
            station.size = station.operator.size or station.inputs[0].size
        for index, query in enumerate(self.queries):
            query.index = index
            query.stations.sort(key=lambda station: station.index)
        for station in self.stations:
            station.sink = not any(consumer.query is station.query for consumer in station.consumers)
        for station in reversed(self.stations):
            station.timed = station.operator.is_time_driven or any(consumer.timed for consumer in station.consumers)

    def producers(self) -> list[Stream | Station]:
        """Return the streams and stations: all that put out tuples."""
        return [*self.streams, *self.stations]

    @property
    def abstract(self) -> bool:
        """Whether the plan has operators and all of them are abstract, with declared cost and selectivity."""
        return bool(self.stations) and all(isinstance(station.operator, AbstractOperator) for station in self.stations)

    def station(self, name: str) -> Station:
        """Return the station of this name, short or qualified by its query."""
        for station in self.stations:
            if name in (station.name, f"{station.query.name}.{station.name}"):
                return station
        raise PlanError(f"no operator {name!r}{existing(name, [s.name for s in self.stations])}", file=self.name)

    def paths(self) -> list[tuple[Station, ...]]:
        """Return every path from a stream to a sink."""
        paths: list[tuple[Station, ...]] = []
        unfinished: list[tuple[Station, ...]] = []
        for stream in reversed(self.streams):
            unfinished += [(station,) for station in reversed(stream.consumers)]
        while unfinished:
            path = unfinished.pop()
            if path[-1].sink:
                paths.append(path)
            unfinished += [(*path, consumer) for consumer in reversed(path[-1].consumers)]
        return paths

    def components(self, streams: bool = True) -> list[list[Station]]:
        """Return the connected components in plan order; `streams`: a common stream connects its readers."""
        group = {id(station): {id(station): station} for station in self.stations}
        for producer in self.producers() if streams else self.stations:
            together: list[Station] = [*producer.consumers, *([producer] if isinstance(producer, Station) else [])]
            for station in together[1:]:
                a, b = sorted((group[id(together[0])], group[id(station)]), key=len)
                if a is not b:
                    b.update(a)
                    group.update((key, b) for key in a)
        unique = {id(members): members for members in group.values()}
        return [sorted(members.values(), key=lambda s: s.index) for members in unique.values()]

    def by_operator(self) -> list[Segment]:
        """Return one segment per station."""
        return [Segment((station,), station.query.weight) for station in self.stations]

    def by_query(self) -> list[Segment]:
        """Return one segment per query: a tuple runs through the whole query before the next one starts."""
        return [Segment(tuple(query.stations), query.weight) for query in self.queries]

    def by_tree(self) -> list[Segment]:
        """Return one segment per tree: a reader of a stream with all stations downstream; trees that merge are one."""
        return [Segment(tuple(members)) for members in self.components(streams=False)]


def find_surviving_stations(before: Plan, after: Plan) -> dict[str, Station]:
    """Return, by name, the stations of `before` that are also in `after`: the same operator object, not a namesake."""
    operators = {station.name: station.operator for station in after.stations}
    return {station.name: station for station in before.stations if operators.get(station.name) is station.operator}


def is_append_only(query: Query) -> bool:
    """Whether no query upstream retracts rows."""
    ahead: list[object] = list(query.stations)
    while ahead:
        station = ahead.pop()
        if isinstance(station, Station):
            if station.query.node is not None and not station.query.node.is_append_only:
                return False
            ahead += station.inputs
    return True


def sort_topologically(stations: Sequence[Station]) -> list[Station]:
    """Return the stations, each after the stations it reads, otherwise in the given order; refuse a cycle."""
    place = {id(station): position for position, station in enumerate(stations)}
    sorter = TopologicalSorter({
        place[id(station)]: [place[id(producer)] for producer in station.inputs if isinstance(producer, Station)]
        for station in stations
    })  # fmt: skip
    try:
        sorter.prepare()
    except CycleError as error:
        names = " -> ".join(stations[position].name for position in error.args[1])
        raise PlanError(f"operators read from each other in a cycle: {names}") from None
    ready: list[int] = []
    ordered: list[Station] = []
    while sorter:
        for position in sorter.get_ready():
            heapq.heappush(ready, position)
        position = heapq.heappop(ready)
        ordered.append(stations[position])
        sorter.done(position)
    return ordered
