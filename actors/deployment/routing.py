"""Builds the routes by which gateways send each stream to the domains and hosts that read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from actors.deployment.actor_handles import DomainActors
from dsms.live.routes import DomainRoute, Routes, StreamRoute
from dsms.plan.graph import Plan

Readers = Mapping[str, Sequence[int]]  # by stream: the places of a domain's hosts that read it


def build_routes(plan: Plan, actors_by_domain: Sequence[tuple[DomainActors, Readers]], epoch: float) -> Routes:
    """Routes of all streams of a plan to the domains that read them."""
    targets: dict[str, list[DomainRoute]] = {}
    for domain_actors, read in actors_by_domain:
        for stream, places in read.items():
            if places:
                target = DomainRoute(domain_actors.scheduler, tuple(domain_actors.hosts[place] for place in places))
                targets.setdefault(stream, []).append(target)
    streams = {
        stream.name: StreamRoute(stream.schema, stream.timestamp, tuple(targets.get(stream.name, ())))
        for stream in plan.streams
        if stream.schema is not None  # gateways check rows against it, so there are none of other streams
    }
    queries = {query.name: query.node.schema for query in plan.queries if query.node is not None}
    return Routes(streams, queries, epoch, tuple(domain_actors.scheduler for domain_actors, _ in actors_by_domain))


def find_streams_read(plan: Plan, queries: Collection[str]) -> list[str]:
    """The streams that these queries read, directly or not."""
    read: dict[int, str] = {}
    for station in reversed(plan.stations):  # each after all its readers
        if station.query.name in queries or id(station) in read:
            read.update((id(producer), producer.name) for producer in station.inputs)
    return [stream.name for stream in plan.streams if id(stream) in read]
