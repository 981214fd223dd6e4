"""Starting a deployment's actors where their CPU budgets are: all of them within time, or none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from actors import exporter, gateway, outlet
from actors.archive import Archive
from actors.cluster import NAMESPACE, PREFIX
from actors.durable_outlet import DurableOutlet
from actors.durable_scheduler import DurableSchedulerActor
from actors.edition import edition
from actors.exporter import Exporter, Source
from actors.gateway import Gateway
from actors.host import HostActor
from actors.outlet import Outlet
from actors.parts import ANSWER, Crew, Parts, groups, settled, wait_for
from actors.placement import BUDGET, SLIVER, free, seats
from actors.scheduler import SchedulerActor
from dsms.clock import stopwatch
from dsms.errors import DsmsError, PlanError
from dsms.live.setup import Setup
from dsms.live.terms import Terms
from dsms.plan import Plan
from dsms.tokens import Tokens

GatewayActor: Any = ray.remote(**gateway.ACTOR)(Gateway)
OutletActor: Any = ray.remote(**outlet.ACTOR)(Outlet)
DurableOutletActor: Any = ray.remote(**outlet.ACTOR)(DurableOutlet)
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
    resumed: bool = False  # whether domains are to be made without their queries, which come from a checkpoint

    @property
    def durable(self) -> str:
        """The folder of what must not be lost; none where that is not asked for."""
        return str(Path(self.folder) / self.setup.durable) if self.setup.durable else ""


def launched(wanted: Wanted, tell: Tell) -> Parts:
    """All actors of a deployment, ready; whatever was begun has to be swept away by the caller if this fails."""
    places = places_for(len(wanted.queries))
    grouped = [_group(wanted.name, domain, node) for domain, node in enumerate(places)]
    for domain, group in enumerate(grouped):
        if not group.wait(ANSWER):
            raise DsmsError(f"the CPU budget of domain {domain} was free, but Ray did not give it within {ANSWER:g} s")
    lives = [domain + 1 if wanted.durable else 0 for domain in range(len(grouped))]
    crews = {str(domain): crew_of(wanted, domain, group, lives[domain]) for domain, group in enumerate(grouped)}
    exit_ = outlet_of(wanted)
    doors = tuple(gateway_of(wanted, place, exit_) for place in range(wanted.setup.gateways))
    parts = Parts(crews, doors, exit_)
    if wanted.setup.metrics is not None:
        parts = replace(parts, exporter=exporter_of(wanted, parts))
    everyone = [*([] if parts.exporter is None else [parts.exporter]), exit_, *doors]
    there([*everyone, *(one for crew in crews.values() for one in (crew.scheduler, *crew.hosts))], tell)
    return parts


def outlet_of(wanted: Wanted) -> Any:
    """Where its results come together."""
    return here(DurableOutletActor if wanted.durable else OutletActor, f"{wanted.name}:outlet").remote()


def gateway_of(wanted: Wanted, place: int, exit_: Any) -> Any:
    """One of those where rows come in."""
    name = f"gateway-{place}"
    kind = here(GatewayActor, f"{wanted.name}:{name}")
    terms = Terms.of(wanted.setup, wanted.tokens, Path(wanted.folder))
    return kind.remote(name, exit_, terms, durable=wanted.durable)


def exporter_of(wanted: Wanted, parts: Parts) -> Any:
    """Whoever serves its metrics."""
    return here(ExporterActor, f"{wanted.name}:exporter").remote(wanted.name, edition(), sources(parts))


def sources(parts: Parts) -> list[Source]:
    """Whom metrics are asked of."""
    return [
        *(Source(f"scheduler-{crew.name}", crew.scheduler, "metrics") for crew in parts.crews.values()),
        *(Source(f"gateway-{place}", door, "metrics") for place, door in enumerate(parts.gateways)),
        Source("outlet", parts.outlet, "there", None),
    ]


def places_for(domains: int, instead: str | None = None) -> list[str]:
    """A node with a free budget for each domain; those of a deployment that this one comes `instead` of are free."""
    told: Any = ray.nodes
    nodes: list[dict[str, Any]] = told()
    own = f"{PREFIX}{instead}:"
    taken = [group for group in placement_group_table().values() if not group["name"].startswith(own)]
    return seats(domains, free(nodes, taken), {node["NodeID"]: node["NodeManagerAddress"] for node in nodes})


def check_durable(setup: Setup, plan: Plan, folder: str, resume: bool) -> None:
    """Refuse what could not be gone on with, and to begin where something is that could be."""
    if not setup.durable:
        if resume:
            raise DsmsError("`resume` needs `durable`: the folder that was given when it was begun")
        return
    archive = Archive(Path(folder) / setup.durable)
    if archive.folder.exists() and not archive.folder.is_dir():
        raise DsmsError(f"durable: {str(archive.folder)!r} is a file; a folder is wanted")
    if not resume and not archive.empty:
        raise DsmsError(
            f"{str(archive.folder)!r} holds what an earlier deployment has stored: "
            "`dsms up --resume` goes on with it, another folder leaves it as it is"
        )
    if resume:
        _, sections = archive.latest()
        if (found := sum(name.count("/") == 0 and name.startswith("domain-") for name in sections)) != setup.domains:
            raise DsmsError(f"{setup.domains} domains are wanted, {found} were saved: their number cannot change")
        if (found := len(list(archive.folder.glob("gateway-*.log")))) > setup.gateways:
            raise DsmsError(f"{setup.gateways} gateways are wanted, {found} have stored rows: there must be as many")
    check_sinks(plan)


def check_sinks(plan: Plan) -> None:
    """Refuse files that could not be gone on with."""
    for query in plan.queries:
        if isinstance(query.sink, Mapping) and (kind := unfinished(query.sink)) is not None:
            raise PlanError(
                f"a {kind} file cannot be gone on with after a crash: csv or jsonl is wanted", "sink"
            ).within(f"queries.{query.name}")


def unfinished(sink: Mapping[str, Any]) -> str | None:
    """What a file is called that is none before it is finished."""
    if "parquet" in sink:
        return "Parquet"
    return "gzip" if any(str(path).endswith(".gz") for path in sink.values()) else None


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


def here(kind: Any, name: str, restarts: int = 0) -> Any:
    """An actor to be started under a name on this node: where clients come to, and the plan's files are."""
    return kind.options(
        **_kept(name, restarts),
        scheduling_strategy=NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), False),
    )


def group_of(wanted: Wanted, domain: int) -> PlacementGroup:
    """The CPU budget of a domain that is rebuilt: the one it had, or another if that node is gone."""
    name = f"{PREFIX}{wanted.name}:domain-{domain}"
    for known in placement_group_table().values():
        if known["name"] == name and known["state"] == "CREATED":
            found: PlacementGroup = ray.util.get_placement_group(name)
            return found
        if known["name"] == name and known["state"] != "REMOVED":
            remove_placement_group(ray.util.get_placement_group(name))
            wait_for(lambda: name not in groups(wanted.name), ANSWER)
    group = _group(wanted.name, domain, places_for(1)[0])
    if not group.wait(ANSWER):
        raise DsmsError(f"a CPU budget for domain {domain} was free, but Ray did not give it within {ANSWER:g} s")
    return group


def _group(name: str, domain: int, node: str) -> PlacementGroup:
    group: PlacementGroup = placement_group(
        [{BUDGET: 1}],
        strategy="STRICT_PACK",
        name=f"{PREFIX}{name}:domain-{domain}",
        lifetime="detached",
        bundle_label_selector=[{LABEL: node}],
    )
    return group


def crew_of(wanted: Wanted, domain: int, group: PlacementGroup, life: int = 0) -> Crew:
    """One domain's scheduler and hosts, where its budget is."""
    kind = DurableSchedulerActor if wanted.durable else SchedulerActor
    placed: dict[str, Any] = {
        "scheduling_strategy": PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0),
        "resources": {BUDGET: SLIVER},
    }
    scheduler = kind.options(**_kept(f"{wanted.name}:scheduler-{domain}"), **placed).remote(
        str(domain),
        wanted.table,
        wanted.folder,
        wanted.file,
        () if wanted.resumed else wanted.queries[domain],
        wanted.setup,
    )
    hosts = tuple(
        HostActor.options(**_kept(f"{wanted.name}:host-{domain}-{place}"), **placed).remote()
        for place in range(wanted.hosts[domain])
    )
    return Crew(str(domain), scheduler, hosts, life)


def _kept(name: str, restarts: int = 0) -> dict[str, Any]:
    """What makes an actor outlive whoever started it, and be found by its name."""
    return {"name": f"{PREFIX}{name}", "namespace": NAMESPACE, "lifetime": "detached", "max_restarts": restarts}


def check_groups(deployment: str, domains: Iterable[str]) -> None:
    """Refuse to wait for actors whose budget is on a node that has died since: Ray would keep them for its return."""
    lost = {f"{PREFIX}{deployment}:domain-{domain}" for domain in domains}
    lost -= {group["name"] for group in placement_group_table().values() if group["state"] == "CREATED"}
    if lost:
        raise DsmsError(f"the node of {', '.join(sorted(lost))} is gone")


def there(everyone: Sequence[Any], tell: Tell, check: Callable[[], None] = lambda: None) -> None:
    """Wait until all these actors are there, and say how far it is; `check` raises if that is in vain."""
    waiting = [one.__ray_ready__.remote() for one in everyone]
    limit, begun = BEGIN + EACH * len(waiting), stopwatch()
    while waiting:
        ready, waiting = ray.wait(waiting, timeout=1.0)
        settled(ready, "an actor did not start")
        if ready:
            tell(f"{len(everyone) - len(waiting)} of {len(everyone)} actors are up")
        check()
        if waiting and stopwatch() - begun > limit:
            raise DsmsError(f"{len(waiting)} of {len(everyone)} actors were not up after {limit:g} s")
