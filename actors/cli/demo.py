"""See it work: a small Ray, four queries, a bursty load, and one policy after the other in charge; about a minute.

Every policy gets the same rows at the same instants, and begins with empty queues: before the next one takes over,
no rows come until all that is held is worked off, which counts. Ctrl-C ends it at any time and leaves nothing behind.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from threading import Event
from typing import Any

import dsms
from actors.cli import grids
from actors.cli.asking import SLOW, System, log, part
from actors.cli.spectator import spectator
from actors.cli.stopping import leaving, stoppable, undisturbed
from actors.demo import load
from dsms.cli.arguments import positive
from dsms.cli.tables import percent, seconds, show, table
from dsms.cli.telling import progress
from dsms.clock import stopwatch
from dsms.errors import FailedError
from dsms.live.setup import Setup
from dsms.planfile import read_table

NAME = "demo"
PLAN = Path(load.__file__).with_name("plan.toml")
POLICIES = ("fifo", "chain", "fas-mcq", "adaptive")
SECONDS = 12.0
DRAIN = 60.0  # seconds in which the queues must be worked off when nothing comes
GLANCE = 0.1  # between two looks at them
DOWN = 15.0
CONFIG = {
    "worker_maximum_startup_concurrency": 8
}  # with fewer Ray warns, across the view, of as many actors as there are
COLUMNS = ("policy", "memory mean", "max", "latency mean", "p99", "stale", "results", "turns", "swap")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=positive, metavar="S", default=SECONDS, help=f"of load a policy (default: {SECONDS:g})"
    )


def run(given: argparse.Namespace) -> int:
    plan = read_table(PLAN)
    rows = load.pushes(plan["streams"], given.seconds)
    cluster = part("cluster")
    with stoppable(), leaving(cluster):
        found = _phases(cluster, deployable(plan), rows)
    show(comparison(found, given.seconds))
    return 0


def deployable(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with streams that are pushed rather than made up."""
    streams = {name: {k: v for k, v in each.items() if k != "arrivals"} for name, each in plan["streams"].items()}
    return {**plan, "streams": streams}


def comparison(found: list[dict[str, Any]], length: float) -> Any:
    """The phases of a status side by side."""
    about = f"{length:g} s of the same load under each policy; memory in rows; stale: share of time, mean over queries"
    made = table("", COLUMNS, left=("policy",), caption=about)
    for phase in found:
        made.add_row(
            phase["policy"],
            grids.rate(phase["memory_mean"]),
            grids.count(phase["memory_max"]),
            seconds(phase["latency_mean"]),
            seconds(phase["latency_p99"]),
            percent(phase["staleness"]),
            grids.count(phase["results"]),
            grids.count(phase["turns"]),
            seconds(phase["swap_seconds"]),
        )
    return made


def _phases(cluster: Any, plan: dict[str, Any], rows: list[load.Push]) -> list[dict[str, Any]]:
    """All from the beginning to the end, as the system's status tells of it."""
    with progress() as tell:
        tell("starting Ray")
        cluster.local(_system_config=CONFIG)
        setup = Setup.read(plan["live"])
        handle = part("deployment").up(plan, str(PLAN.parent), str(PLAN), name=NAME, setup=setup, progress=tell)
        running = System(NAME, handle)
    door = running.ask("status", timeout=SLOW)["gateways"][0]["address"]
    never = Event()
    with spectator(running), dsms.connect(door) as client:
        for policy in POLICIES:
            running.ask("swap", policy, "its turn")
            load.played(client, rows, never.wait)
            _drain(running, never)
    domain = running.ask("status")["domains"][0]
    if domain["error"]:
        raise FailedError(domain["error"])
    with undisturbed():
        try:
            running.ask("down", timeout=DOWN)
        except FailedError as error:  # what has been shown stands; Ray ends what is left
            log.warning("%s", error)
    return list(domain["phases"][-len(POLICIES) :])


def _drain(running: System, never: Event) -> None:
    """Wait until nothing is held."""
    begun = stopwatch()
    while held := sum(one["held"] for one in running.ask("status")["domains"]):
        if stopwatch() - begun > DRAIN:
            raise FailedError(f"{held:,.0f} rows are still held {DRAIN:g} s after the last came")
        never.wait(GLANCE)
