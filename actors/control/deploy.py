"""Deploys a plan on the cluster that this process has joined, and starts the deployment's control actor."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from actors.control.deployment import Deployment, DeploymentActor
from actors.deployment.actor_handles import tear_down
from actors.deployment.end_older import take_over
from actors.deployment.launch import (
    DeploymentSpec,
    check_durable,
    check_ports,
    create_actors,
    find_nodes,
    place_on_this_node,
    wait_until_ready,
)
from actors.deployment.start_wait import ReportProgress, StartWait
from actors.rpc.answers import await_answer, is_answered
from actors.rpc.messages import Call, PlanTable, send
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.live.query_placement import place_queries
from dsms.live.query_set import QuerySet
from dsms.net.tokens import Tokens

STEP_POLL_S = 1.0
STEP_TIMEOUT_S = 5.0
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

    With `resume` it continues from the last checkpoint in the folder `durable`.
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
        return _start(spec, progress)
    except BaseException:  # a Ctrl-C too leaves nothing half-started behind
        if ended := tear_down(name):
            progress(f"{len(ended)} that were started have been ended")
        raise


def _start(spec: DeploymentSpec, progress: ReportProgress) -> Deployment:
    """Start all actors at the same time, then the queries; Ray restarts a control actor that has checkpoints."""
    parts = create_actors(spec, progress)
    kind = place_on_this_node(DeploymentActor, spec.name, restarts=-1 if spec.durable else 0)
    control = kind.remote(spec, parts)
    wait_until_ready([control, *parts.all_actors()], progress)
    return _await_start(control, send(control.begin), spec.name, progress)


def _await_start(handle: Deployment, starting: Call[object], name: str, progress: ReportProgress) -> Deployment:
    """Wait until the queries run, as long as there is progress."""
    waiting, step = StartWait(progress), "starting"
    while not is_answered(starting, STEP_POLL_S):
        with suppress(DsmsError):
            now = await_answer(send(handle.starting_step), "the step of the start", STEP_TIMEOUT_S)
            if now is not None and now != step:
                step = now
                waiting.advance()
        waiting.check(f"deployment {name!r} is {step}")
    await_answer(starting, f"deployment {name!r}")
    return handle
