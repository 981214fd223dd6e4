"""Starting a deployment's actors where their CPU budgets are: all of them within time, or none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from actors import exporter, gateway, outlet
from actors.cluster import NAMESPACE, PREFIX
from actors.edition import edition
from actors.exporter import Exporter, Source
from actors.gateway import Gateway
from actors.host import HostActor
from actors.outlet import Outlet
from actors.parts import ANSWER, Crew, Parts, settled
from actors.placement import BUDGET, SLIVER, free, seats
from actors.scheduler import SchedulerActor
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.setup import Setup
from dsms.live.terms import Terms
from dsms.tokens import Tokens

GatewayActor: Any = ray.remote(**gateway.ACTOR)(Gateway)
OutletActor: Any = ray.remote(**outlet.ACTOR)(Outlet)
ExporterActor: Any = ray.remote(**exporter.ACTOR)(Exporter)
BEGIN = 30.0  # seconds that starting may take in any case,
EACH = 5.0  # and more for every actor: two busy cores take one or two
LABEL = "ray.io/node-id"
Tell = Callable[[str], object]


@dataclass(frozen=True)
class Wanted:
    """A plan to be deployed: who gets which queries, and over how many hosts."""

    name: str
    table: Mapping[str, Any]
    folder: str
    file: str
    setup: Setup
    queries: Sequence[Collection[str]]  # by domain
    hosts: Sequence[int]  # by domain
    tokens: Tokens | None = None  # of which clients have to show one


def launched(wanted: Wanted, tell: Tell) -> Parts:
    """All actors of a deployment, ready; whatever was begun has to be swept away by the caller if this fails."""
    places = places_for(len(wanted.queries))
    grouped = [_group(wanted.name, domain, node) for domain, node in enumerate(places)]
    for domain, group in enumerate(grouped):
        if not group.wait(ANSWER):
            raise DsmsError(f"the CPU budget of domain {domain} was free, but Ray did not give it within {ANSWER:g} s")
    crews = {str(domain): _crew(wanted, domain, group) for domain, group in enumerate(grouped)}
    exit_ = here(OutletActor, f"{wanted.name}:outlet").remote()
    terms = Terms.of(wanted.setup, wanted.tokens, Path(wanted.folder))
    doors = tuple(
        here(GatewayActor, f"{wanted.name}:gateway-{place}").remote(f"gateway-{place}", exit_, terms)
        for place in range(wanted.setup.gateways)
    )
    parts = Parts(crews, doors, exit_, _exporter(wanted, crews, doors, exit_))
    _await(parts, tell)
    return parts


def _exporter(wanted: Wanted, crews: Mapping[str, Crew], doors: Sequence[Any], exit_: Any) -> Any:
    """Whoever serves metrics, if that is asked for."""
    if wanted.setup.metrics is None:
        return None
    sources = [
        *(Source(f"scheduler-{crew.name}", crew.scheduler, "metrics") for crew in crews.values()),
        *(Source(f"gateway-{place}", door, "metrics") for place, door in enumerate(doors)),
        Source("outlet", exit_, "there", None),
    ]
    return here(ExporterActor, f"{wanted.name}:exporter").remote(wanted.name, edition(), sources)


def places_for(domains: int, instead: str | None = None) -> list[str]:
    """A node with a free budget for each domain; those of a deployment that this one comes `instead` of are free."""
    told: Any = ray.nodes
    nodes: list[dict[str, Any]] = told()
    own = f"{PREFIX}{instead}:"
    taken = [group for group in placement_group_table().values() if not group["name"].startswith(own)]
    return seats(domains, free(nodes, taken), {node["NodeID"]: node["NodeManagerAddress"] for node in nodes})


def check_ports(setup: Setup) -> None:
    """Refuse ports that are taken before anything is started: gateways and metrics are on this machine."""
    for port in range(setup.port, setup.port + setup.gateways) if setup.port else ():
        _check("no gateway can listen", setup.host, port, "port")
    if setup.metrics:
        _check("metrics cannot be served", setup.metrics_host, setup.metrics, "metrics")


def _check(what: str, host: str, port: int, setting: str) -> None:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise DsmsError(
            f"{what} at {host}:{port}: {error.strerror or error}; "
            f"`{setting}` in [live] takes another, or 0: any that is free"
        ) from None


def here(kind: Any, name: str) -> Any:
    """An actor to be started under a name on this node: where clients come to, and the plan's files are."""
    return kind.options(
        **_kept(name),
        scheduling_strategy=NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), False),
    )


def _group(name: str, domain: int, node: str) -> PlacementGroup:
    group: PlacementGroup = placement_group(
        [{BUDGET: 1}],
        strategy="STRICT_PACK",
        name=f"{PREFIX}{name}:domain-{domain}",
        lifetime="detached",
        bundle_label_selector=[{LABEL: node}],
    )
    return group


def _crew(wanted: Wanted, domain: int, group: PlacementGroup) -> Crew:
    """One domain's scheduler and hosts, where its budget is."""
    placed: dict[str, Any] = {
        "scheduling_strategy": PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0),
        "resources": {BUDGET: SLIVER},
    }
    scheduler = SchedulerActor.options(**_kept(f"{wanted.name}:scheduler-{domain}"), **placed).remote(
        str(domain),
        wanted.table,
        wanted.folder,
        wanted.file,
        wanted.queries[domain],
        wanted.setup,
    )
    hosts = tuple(
        HostActor.options(**_kept(f"{wanted.name}:host-{domain}-{place}"), **placed).remote()
        for place in range(wanted.hosts[domain])
    )
    return Crew(str(domain), scheduler, hosts)


def _kept(name: str) -> dict[str, Any]:
    """What makes an actor outlive whoever started it, and be found by its name."""
    return {"name": f"{PREFIX}{name}", "namespace": NAMESPACE, "lifetime": "detached", "max_restarts": 0}


def _await(parts: Parts, tell: Tell) -> None:
    """Wait until all actors are there, and say how far it is."""
    everyone = [
        *([] if parts.exporter is None else [parts.exporter]),
        parts.outlet,
        *parts.gateways,
        *(one for crew in parts.crews.values() for one in (crew.scheduler, *crew.hosts)),
    ]
    waiting = [one.__ray_ready__.remote() for one in everyone]
    limit, begun = BEGIN + EACH * len(waiting), stopwatch()
    while waiting:
        ready, waiting = ray.wait(waiting, timeout=1.0)
        settled(ready, "an actor did not start")
        if ready:
            tell(f"{len(everyone) - len(waiting)} of {len(everyone)} actors are up")
        if waiting and stopwatch() - begun > limit:
            raise DsmsError(f"{len(waiting)} of {len(everyone)} actors were not up after {limit:g} s")
