"""Who reads what: the ways by which gateways bring rows to the domains of a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from actors.parts import Crew
from dsms.live.routes import Routes, Target, Way
from dsms.plan import Plan

Readers = Mapping[str, Sequence[int]]  # by stream: the places of a domain's hosts that read it


def routes_of(plan: Plan, crews: Sequence[tuple[Crew, Readers]], epoch: float) -> Routes:
    """All streams of a plan to the domains that read them, each once."""
    targets: dict[str, list[Target]] = {}
    for crew, read in crews:
        for stream, places in read.items():
            if places:
                target = Target(crew.scheduler, tuple(crew.hosts[place] for place in places))
                targets.setdefault(stream, []).append(target)
    streams = {
        stream.name: Way(stream.schema, stream.timestamp, tuple(targets.get(stream.name, ())))
        for stream in plan.streams
        if stream.schema is not None  # rows are checked where they come in: by that of which nothing is known none
    }
    queries = {query.name: query.node.schema for query in plan.queries if query.node is not None}
    return Routes(streams, queries, epoch, tuple(crew.scheduler for crew, _ in crews))


def streams_read(plan: Plan, queries: Collection[str]) -> list[str]:
    """The streams that these queries read, directly or not."""
    read: dict[int, str] = {}
    for station in reversed(plan.stations):  # each after all that read it
        if station.query.name in queries or id(station) in read:
            read.update((id(producer), producer.name) for producer in station.inputs)
    return [stream.name for stream in plan.streams if id(stream) in read]
