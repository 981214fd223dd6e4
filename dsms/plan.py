"""The graph of a plan: streams at one end, sinks at the other, stations between; and how it may be cut."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsms.algebra import Node
from dsms.arrivals import Arrivals
from dsms.errors import PlanError, existing
from dsms.live.setup import Setup
from dsms.operators import Abstract, Operator
from dsms.qos import Qos
from dsms.schema import Schema
from dsms.segment import Segment
from dsms.settings import Settings


@dataclass(eq=False)
class Stream:
    """Where tuples come from."""

    name: str
    size: float = 1.0  # bytes of a tuple
    arrivals: Callable[[int], Arrivals] | None = None  # by the run's seed; None: pushed from outside
    schema: Schema | None = None  # of real rows; None: whatever comes
    timestamp: str | None = None  # the column that has a row's timestamp; None: it is when the row arrives
    source: Mapping[str, Any] | None = None  # the file that `dsms run` reads, as the plan says it
    late: int = 0  # by how many microseconds a row may come after one with a later timestamp
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by column: what a load puts there, as said
    consumers: list[Station] = field(default_factory=list, repr=False)


@dataclass(eq=False)
class Station:
    """An operator in a plan: what it reads, who reads it, and whether a query's results leave here."""

    name: str  # unique in the plan: the operator's own name where that is unique, else query.operator
    query: Query
    operator: Operator
    inputs: tuple[Stream | Station, ...] = field(default=(), repr=False)
    consumers: list[Station] = field(default_factory=list, repr=False)
    index: int = 0  # in an order in which every station comes after those it reads
    depth: int = 0  # the longest way from a stream
    size: float = 1.0  # bytes of an output tuple
    sink: bool = False
    timed: bool = False  # whether time alone matters to it or to what is behind it


@dataclass(frozen=True)
class Shed:
    """How a query gives rows up: which, and from how many on that wait at one of its inputs."""

    way: str  # "oldest", or "random": any of those that wait, by chance
    ceiling: int


@dataclass(eq=False)
class Query:
    """A continuous query: its stations, and how much its freshness counts."""

    name: str
    weight: float = 1.0
    index: int = 0  # its place in the plan
    stations: list[Station] = field(default_factory=list, repr=False)
    node: Node | None = None  # what it means, where it works on real rows
    sink: Any = None  # the file that `dsms run` writes, as the plan says it
    shed: Shed | None = None  # None: it waits for all its rows


@dataclass(eq=False)
class Plan:
    """Everything a run needs but the policy."""

    streams: list[Stream]
    stations: list[Station]
    queries: list[Query]
    settings: Settings = field(default_factory=Settings)
    name: str = ""
    qos: Qos | None = None  # what is wanted of it; None: a bit of everything
    adaptive: Mapping[str, Any] = field(default_factory=dict)  # what is said in it for the policy of this name
    folder: Path = Path()  # what the names of files in it are relative to
    live: Setup = field(default_factory=Setup)  # how it is deployed

    def __post_init__(self) -> None:
        self.stations = in_order(self.stations)
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
            station.timed = station.operator.timed or any(consumer.timed for consumer in station.consumers)

    def producers(self) -> list[Stream | Station]:
        """All that puts tuples out."""
        return [*self.streams, *self.stations]

    @property
    def abstract(self) -> bool:
        """Whether there are operators and none works on real rows."""
        return bool(self.stations) and all(isinstance(station.operator, Abstract) for station in self.stations)

    def station(self, name: str) -> Station:
        """The station of this name, short or qualified."""
        for station in self.stations:
            if name in (station.name, f"{station.query.name}.{station.name}"):
                return station
        raise PlanError(f"no operator {name!r}{existing(name, [s.name for s in self.stations])}", file=self.name)

    def paths(self) -> list[tuple[Station, ...]]:
        """Every way a tuple may take from a stream to a sink."""
        ways: list[tuple[Station, ...]] = []
        open_ways: list[tuple[Station, ...]] = []
        for stream in reversed(self.streams):
            open_ways += [(station,) for station in reversed(stream.consumers)]
        while open_ways:
            way = open_ways.pop()
            if way[-1].sink:
                ways.append(way)
            open_ways += [(*way, consumer) for consumer in reversed(way[-1].consumers)]
        return ways

    def components(self, streams: bool = True) -> list[list[Station]]:
        """The stations that hang together when directions are ignored, or not by a stream alone, in plan order."""
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
        """One segment a station."""
        return [Segment((station,), station.query.weight) for station in self.stations]

    def by_query(self) -> list[Segment]:
        """One segment a query: a tuple runs through all of it before the next is taken."""
        return [Segment(tuple(query.stations), query.weight) for query in self.queries]

    def by_tree(self) -> list[Segment]:
        """One segment for all that is behind a reader of a stream; those whose ways meet are one."""
        return [Segment(tuple(members)) for members in self.components(streams=False)]


def surviving(before: Plan, after: Plan) -> dict[str, Station]:
    """By name, the stations of a plan that are in one that follows on it: they themselves, not others so called."""
    operators = {station.name: station.operator for station in after.stations}
    return {station.name: station for station in before.stations if operators.get(station.name) is station.operator}


def in_order(stations: Sequence[Station]) -> list[Station]:
    """The stations so that each comes after those it reads, otherwise as given; a cycle is refused."""
    place = {id(station): position for position, station in enumerate(stations)}
    readers: dict[int, list[int]] = {position: [] for position in place.values()}
    missing = [0] * len(stations)
    for position, station in enumerate(stations):
        for producer in station.inputs:
            if isinstance(producer, Station):
                readers[place[id(producer)]].append(position)
                missing[position] += 1
    ready = [position for position, count in enumerate(missing) if count == 0]
    ordered: list[Station] = []
    while ready:
        position = heapq.heappop(ready)
        ordered.append(stations[position])
        for reader in readers[position]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, reader)
    if len(ordered) < len(stations):
        raise PlanError(f"operators read from each other in a cycle: {' -> '.join(_cycle(stations, ordered))}")
    return ordered


def _cycle(stations: Iterable[Station], ordered: Iterable[Station]) -> list[str]:
    left = {id(s) for s in stations} - {id(s) for s in ordered}
    station = next(s for s in stations if id(s) in left)
    walked: list[Station] = []
    while station not in walked:
        walked.append(station)
        station = next(p for p in station.inputs if isinstance(p, Station) and id(p) in left)
    # Inputs were followed upstream; people read a cycle the way tuples would go.
    return [s.name for s in [*walked[walked.index(station) :], station][::-1]]
