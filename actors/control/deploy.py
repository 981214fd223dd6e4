"""Deploys a plan on the cluster that this process has joined, and starts the deployment's control actor."""

from __future__ import annotations

import re
from pathlib import Path

from actors.deployment.control import MIGRATION_TIMEOUT_S
from actors.deployment.deployment import Deployment, DeploymentActor
from actors.deployment.launch import (
    DeploymentSpec,
    ReportProgress,
    check_durable,
    check_ports,
    find_nodes,
    launch_actors,
    place_on_this_node,
)
from actors.deployment.parts import DeploymentActors, tear_down
from actors.deployment.takeover import take_over
from actors.recovery.durable_deployment import DurableDeploymentActor
from actors.rpc.answers import await_answer
from actors.rpc.messages import PlanTable, send
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.live.query_placement import place_queries
from dsms.live.query_set import QuerySet
from dsms.net.tokens import Tokens

NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]+")


def up(
    table: PlanTable,
    folder: str,
    file: str,
    name: str = "dsms",
    setup: LiveConfig | None = None,
    replace: bool = False,
    tokens: Tokens | None = None,
    progress: ReportProgress = lambda _: None,
    resume: bool = False,
) -> Deployment:
    """Deploy a plan and return the handle of its control actor.

    With `resume` it continues from the last checkpoint in the folder that the setup names.
    """
    if not NAME_PATTERN.fullmatch(name):
        raise DsmsError(f"{name!r} cannot be the name of a deployment: use letters, digits, _ and -")
    setup = setup or LiveConfig.read(table.get("live", {}))
    plan = QuerySet(table, Path(folder), file).plan  # an error in it is found before anything is started
    check_durable(setup, plan, folder, resume)
    find_nodes(setup.domains, instead=name)  # before an older deployment is ended
    take_over(name, replace, progress)
    check_ports(setup)
    queries = place_queries(plan, setup.domains)
    stations = [sum(station.query.name in names for station in plan.stations) for names in queries]
    hosts = [max(1, min(setup.actors, count)) for count in stations]
    spec = DeploymentSpec(name, table, folder, file, setup, queries, hosts, tokens, resumed=resume)
    try:
        return _start_control_actor(spec, launch_actors(spec, progress))
    except BaseException:  # a Ctrl-C too leaves nothing half-started behind
        if ended := tear_down(name):
            progress(f"{len(ended)} that were started have been ended")
        raise


def _start_control_actor(spec: DeploymentSpec, parts: DeploymentActors) -> Deployment:
    """Start the control actor and the queries; Ray restarts the control actor of a durable deployment."""
    queries = {str(domain): list(names) for domain, names in enumerate(spec.queries)}
    plan = spec.name, spec.table, spec.folder, spec.file
    handle: Deployment
    if spec.durable:
        durable = place_on_this_node(DurableDeploymentActor, spec.name, restarts=-1).remote(*plan, spec, parts)
        handle, starting = durable, send(durable.begin, queries, spec.resumed)
    else:
        handle = place_on_this_node(DeploymentActor, spec.name).remote(*plan, spec.setup, parts)
        starting = send(handle.begin, queries)
    await_answer(starting, f"deployment {spec.name!r}", MIGRATION_TIMEOUT_S)
    return handle
