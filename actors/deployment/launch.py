"""Starts a deployment's actors beside their CPU budgets, and checks beforehand what would make the start fail."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from actors.checkpoints.store import CheckpointStore
from actors.cluster.cluster import NAMESPACE, PREFIX
from actors.cluster.placement import BUDGET_FRACTION, CPU_BUDGET_RESOURCE, RayTable, assign_nodes, count_free_budgets
from actors.deployment.actor_handles import DeploymentActors, DomainActors, list_placement_groups, wait_until
from actors.deployment.start_wait import STALL_LIMIT_S, ReportProgress, StartWait
from actors.hosts.host import HostActor
from actors.ingest.gateway import Gateway, GatewayActor
from actors.metrics.exporter import Exporter, ExporterActor, MetricSource
from actors.results.release import ReleaseAtOnce, ReleaseWithCheckpoint
from actors.results.result_hub import ResultHub, ResultHubActor
from actors.rpc.answers import ANSWER_TIMEOUT_S, await_answers
from actors.rpc.messages import ActorClass, Parameters, PlanTable, T, check_ready
from actors.scheduler.scheduler import SchedulerActor
from dsms.build_id import build_id
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError, PlanError
from dsms.net.access import AccessPolicy
from dsms.net.tokens import Tokens
from dsms.plan.graph import Plan

NODE_LABEL = "ray.io/node-id"
READY_POLL_S = 1.0
RECOVERY_STALL_LIMIT_S = 60.0  # a recovery is tried again


@dataclass(frozen=True)
class DeploymentSpec:
    """A plan to deploy: which queries run in which domain, and on how many hosts."""

    name: str
    table: PlanTable
    folder: str
    file: str
    setup: LiveConfig
    queries: Sequence[Collection[str]]  # by domain
    hosts: Sequence[int]  # by domain
    tokens: Tokens | None = None  # that clients authenticate with
    resumed: bool = False  # whether domains start without queries, which come from a checkpoint

    @property
    def durable(self) -> str:
        """The folder of checkpoints and logs; empty where there are none."""
        return str(Path(self.folder) / self.setup.durable) if self.setup.durable else ""


def launch_actors(spec: DeploymentSpec) -> DeploymentActors:
    """Start all actors of a deployment that is restored, and wait for them."""
    parts = create_actors(spec, lambda _: None)
    wait_until_ready(parts.all_actors(), limit_s=RECOVERY_STALL_LIMIT_S)
    return parts


def create_actors(spec: DeploymentSpec, progress: ReportProgress) -> DeploymentActors:
    """Have Ray start all actors of a deployment, without waiting; after an error the caller tears down."""
    places = find_nodes(len(spec.queries))
    grouped = [_create_placement_group(spec.name, domain, node) for domain, node in enumerate(places)]
    waiting = StartWait(progress)
    for domain, group in enumerate(grouped):
        while not group.wait(READY_POLL_S):
            waiting.check(f"waiting for Ray to give the CPU budget of domain {domain}, which is free")
    incarnations = [domain + 1 if spec.durable else 0 for domain in range(len(grouped))]
    actors_by_domain = {
        str(domain): start_domain(spec, domain, group, incarnations[domain]) for domain, group in enumerate(grouped)
    }
    result_hub = start_result_hub(spec)
    gateways = tuple(start_gateway(spec, place, result_hub) for place in range(spec.setup.gateways))
    parts = DeploymentActors(actors_by_domain, gateways, result_hub)
    if spec.setup.metrics is not None:
        parts = replace(parts, exporter=start_exporter(spec, parts))
    return parts


def start_result_hub(spec: DeploymentSpec) -> ResultHub:
    """Start the result hub."""
    release = ReleaseWithCheckpoint() if spec.durable else ReleaseAtOnce()
    return place_on_this_node(ResultHubActor, f"{spec.name}:outlet").remote(release)


def start_gateway(spec: DeploymentSpec, place: int, result_hub: ResultHub) -> Gateway:
    """Start one of the gateways."""
    name = f"gateway-{place}"
    kind = place_on_this_node(GatewayActor, f"{spec.name}:{name}")
    terms = AccessPolicy.of(spec.setup, spec.tokens, Path(spec.folder))
    return kind.remote(name, result_hub, terms, durable=spec.durable)


def start_exporter(spec: DeploymentSpec, parts: DeploymentActors) -> Exporter:
    """Start the exporter of metrics."""
    return place_on_this_node(ExporterActor, f"{spec.name}:exporter").remote(
        spec.name, build_id(), list_metric_sources(parts)
    )


def list_metric_sources(parts: DeploymentActors) -> list[MetricSource]:
    """The actors that have metrics."""
    domains, gateways = parts.actors_by_domain.values(), enumerate(parts.gateways)
    sources = [MetricSource(f"scheduler-{one.name}", one.scheduler, "metrics") for one in domains]
    sources += [MetricSource(f"gateway-{place}", gateway, "metrics") for place, gateway in gateways]
    return [*sources, MetricSource("outlet", parts.result_hub, "ping", None)]


def find_nodes(domains: int, instead: str | None = None) -> list[str]:
    """A node with a free budget for each domain; budgets of the deployment `instead` count as free."""
    ray_nodes: Any = ray.nodes
    nodes: list[RayTable] = ray_nodes()
    own = f"{PREFIX}{instead}:"
    taken = [group for group in placement_group_table().values() if not group["name"].startswith(own)]
    return assign_nodes(
        domains, count_free_budgets(nodes, taken), {node["NodeID"]: node["NodeManagerAddress"] for node in nodes}
    )


def check_durable(setup: LiveConfig, plan: Plan, folder: str, resume: bool) -> None:
    """Raise an error for what cannot be resumed, and for a folder that another deployment has used."""
    if not setup.durable:
        if resume:
            raise DsmsError("`resume` needs `durable`: the folder that the deployment was started with")
        return
    store = CheckpointStore(Path(folder) / setup.durable)
    if store.folder.exists() and not store.folder.is_dir():
        raise DsmsError(f"durable: {str(store.folder)!r} is a file; it must be a folder")
    if not resume and not store.is_empty:
        raise DsmsError(
            f"{str(store.folder)!r} holds what an earlier deployment has stored: "
            "`dsms up --resume` continues from it, another folder leaves it as it is"
        )
    if resume:
        _, sections = store.latest()
        if (saved := sum(name.count("/") == 0 and name.startswith("domain-") for name in sections)) != setup.domains:
            raise DsmsError(f"the plan has {setup.domains} domains, the checkpoint {saved}: their number cannot change")
        if (logs := len(list(store.folder.glob("gateway-*.log")))) > setup.gateways:
            raise DsmsError(
                f"the plan has {setup.gateways} gateways, but {logs} have stored rows: give at least as many"
            )
    check_sinks(plan)


def check_sinks(plan: Plan) -> None:
    """Raise an error for files that cannot be continued after a crash."""
    for query in plan.queries:
        if isinstance(query.sink, Mapping) and (kind := find_unresumable_format(query.sink)) is not None:
            raise PlanError(f"a {kind} file cannot be continued after a crash: use csv or jsonl", "sink").within(
                f"queries.{query.name}"
            )


def find_unresumable_format(sink: Mapping[str, object]) -> str | None:
    """The format of a file that is invalid until it is complete; None for others."""
    if "parquet" in sink:
        return "Parquet"
    return "gzip" if any(str(path).endswith(".gz") for path in sink.values()) else None


def check_ports(setup: LiveConfig) -> None:
    """Raise an error for ports that are in use: gateways and metrics are on this machine."""
    for port in range(setup.port, setup.port + setup.gateways) if setup.port else ():
        _check_port("no gateway can listen", setup.host, port, "port")
    if setup.metrics:
        _check_port("metrics cannot be served", setup.metrics_host, setup.metrics, "metrics")


def _check_port(what: str, host: str, port: int, setting: str) -> None:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise DsmsError(
            f"{what} at {host}:{port}: {error.strerror or error}; "
            f"`{setting}` in [live] takes another, or 0 for any free one"
        ) from None


def place_on_this_node(kind: ActorClass[Parameters, T], name: str, restarts: int = 0) -> ActorClass[Parameters, T]:
    """An actor class with a name on this node, where clients connect and the plan's files are."""
    return kind.options(
        **_detached_options(name, restarts),
        scheduling_strategy=NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), False),
    )


def claim_placement_group(spec: DeploymentSpec, domain: int) -> PlacementGroup:
    """The CPU budget of a domain that is rebuilt: its old one, or another if that node is gone."""
    name = f"{PREFIX}{spec.name}:domain-{domain}"
    for known in placement_group_table().values():
        if known["name"] == name and known["state"] == "CREATED":
            group: PlacementGroup = ray.util.get_placement_group(name)
            return group
        if known["name"] == name and known["state"] != "REMOVED":
            remove_placement_group(ray.util.get_placement_group(name))
            wait_until(lambda: name not in list_placement_groups(spec.name), ANSWER_TIMEOUT_S)
    group = _create_placement_group(spec.name, domain, find_nodes(1)[0])
    if not group.wait(ANSWER_TIMEOUT_S):
        raise DsmsError(
            f"a CPU budget for domain {domain} was free, but Ray did not give it within {ANSWER_TIMEOUT_S:g} s"
        )
    return group


def _create_placement_group(name: str, domain: int, node: str) -> PlacementGroup:
    group: PlacementGroup = placement_group(
        [{CPU_BUDGET_RESOURCE: 1}],
        strategy="STRICT_PACK",
        name=f"{PREFIX}{name}:domain-{domain}",
        lifetime="detached",
        bundle_label_selector=[{NODE_LABEL: node}],
    )
    return group


def start_domain(spec: DeploymentSpec, domain: int, group: PlacementGroup, incarnation: int = 0) -> DomainActors:
    """Start a domain's scheduler and hosts, beside its budget."""
    placed: dict[str, Any] = {
        "scheduling_strategy": PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0),
        "resources": {CPU_BUDGET_RESOURCE: BUDGET_FRACTION},
    }
    scheduler = SchedulerActor.options(**_detached_options(f"{spec.name}:scheduler-{domain}"), **placed).remote(
        str(domain),
        spec.table,
        spec.folder,
        spec.file,
        () if spec.resumed else spec.queries[domain],
        spec.setup,
    )
    hosts = tuple(
        HostActor.options(**_detached_options(f"{spec.name}:host-{domain}-{place}"), **placed).remote()
        for place in range(spec.hosts[domain])
    )
    return DomainActors(str(domain), scheduler, hosts, incarnation)


def _detached_options(name: str, restarts: int = 0) -> dict[str, object]:
    """Options of an actor that outlives its creator and is found by its name."""
    return {"name": f"{PREFIX}{name}", "namespace": NAMESPACE, "lifetime": "detached", "max_restarts": restarts}


def check_placement_groups(deployment: str, domains: Iterable[str]) -> None:
    """Raise an error if the node of a domain's budget is gone: Ray 2.60 would wait for its return."""
    lost = {f"{PREFIX}{deployment}:domain-{domain}" for domain in domains}
    lost -= {group["name"] for group in placement_group_table().values() if group["state"] == "CREATED"}
    if lost:
        raise DsmsError(f"the node of {', '.join(sorted(lost))} is gone")


def wait_until_ready(
    actors: Sequence[object],
    progress: ReportProgress = lambda _: None,
    check: Callable[[], None] = lambda: None,
    limit_s: float = STALL_LIMIT_S,
) -> None:
    """Wait until all actors run, and report progress; `check` raises an error if waiting is in vain."""
    waiting, start_wait = [check_ready(actor) for actor in actors], StartWait(progress, limit_s)
    while waiting:
        ready, waiting = ray.wait(waiting, timeout=READY_POLL_S)
        await_answers(ready, "an actor did not start")
        if ready:
            start_wait.advance()
            progress(f"{len(actors) - len(waiting)} of {len(actors)} actors are up")
        check()
        if waiting:
            start_wait.check(f"waiting for {len(waiting)} of {len(actors)} actors to start")
