"""See it work: a small Ray, four queries, a bursty load from Spark, and one policy after the other in charge.

Every policy gets the same rows at the same instants, and begins with empty queues: before the next one takes over,
no rows come until all that is held is worked off, which counts. What happens is recorded; at the end there is a report
of it. Ctrl-C ends it at any time and leaves nothing running.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from actors import demo
from actors.cli import grids
from actors.cli.asking import SLOW, System, log, part
from actors.cli.console import HOST, parts
from actors.cli.leaving import leaving
from actors.cli.spectator import spectator
from dsms.cli.arguments import positive, whole
from dsms.cli.stopping import stoppable, undisturbed
from dsms.cli.tables import percent, seconds, show, table
from dsms.cli.telling import progress
from dsms.clock import epoch, stopwatch
from dsms.errors import DsmsError, FailedError
from dsms.live.setup import Setup
from dsms.planfile import read_table

NAME = "demo"
PLAN = Path(demo.__file__).with_name("plan.toml")
POLICIES = ("fifo", "chain", "fas-mcq", "adaptive")
SECONDS = 12.0
DRAIN = 60.0  # seconds in which the queues must be worked off when nothing comes
GLANCE = 0.1  # between two looks at them
DOWN = 15.0
SOON = 0.1  # seconds before the first row of a load: who is to decide on it is put in charge
TURN = "its turn"
OUT, RECORDED, PAGE = "demo-report", "recorded", "report.html"
CONFIG = {
    "worker_maximum_startup_concurrency": 8
}  # with fewer Ray warns, across the view, of as many actors as there are
COLUMNS = ("policy", "memory mean", "max", "latency mean", "p99", "stale", "results", "turns", "swap")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=positive, metavar="S", default=SECONDS, help=f"of load a policy (default: {SECONDS:g})"
    )

    parser.add_argument("--metrics", type=whole, metavar="P", help="serve metrics at this port; 0: any that is free")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path(OUT), help=f"where the report goes, by date (default: {OUT})"
    )


def run(given: argparse.Namespace) -> int:
    plan = read_table(PLAN)
    out = given.out.resolve() / time.strftime("%Y-%m-%d-%H%M%S")
    setup = replace(Setup.read(plan["live"]), metrics=given.metrics, record=str(out / RECORDED))
    cluster = part("cluster")
    with stoppable(), leaving(cluster):
        found, report = _phases(cluster, plan, setup, given.seconds)
    show(comparison(found, given.seconds))
    print(report)
    return 0


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


def _phases(cluster: Any, plan: dict[str, Any], setup: Setup, length: float) -> tuple[list[dict[str, Any]], str]:
    """All from the beginning to the end: as the system's status tells of it, and where there is more."""
    from loadgen.drive import Drive, Way  # these load Spark
    from loadgen.load import Recipe
    from loadgen.session import during

    never, recipe = Event(), Recipe.of(PLAN, duration=length)
    with ExitStack() as stack:
        with progress() as tell:
            tell("starting Spark")
            spark = stack.enter_context(during())
            tell("starting Ray")
            cluster.local(_system_config=CONFIG)
            handle = part("deployment").up(plan, str(PLAN.parent), str(PLAN), name=NAME, setup=setup, progress=tell)
            running = System(NAME, handle)
            door = running.ask("status", timeout=SLOW)["gateways"][0]["address"]
            note = _console(stack, running)
            tell(f"{note}; warming Spark up")
            way = Way(door)
            with Drive(spark, recipe, way) as drive:
                drive.warm()
        with spectator(running, note):
            for policy in POLICIES:
                with Drive(spark, recipe, way) as drive:
                    begin = drive.start()
                    never.wait(begin - SOON - epoch())
                    running.ask("swap", policy, TURN)
                    drive.wait(lambda: never.wait(GLANCE))
                _drain(running, never)
                running.ask("swap", POLICIES[0], "until the next load begins")
        found = _told(running)
        return found, _report(spark, Path(str(setup.record)))


def _report(spark: Any, recorded: Path) -> str:
    """Work out what was recorded, and say where it is; the phases in between, when nothing comes, are not compared.

    Without it, as where nothing can draw or the disk is full, what the system itself has told is still worth showing.
    """
    from loadgen.report.report import report

    try:
        with progress() as tell:
            report(spark, [recorded], recorded.parent, tell, TURN)
    except (DsmsError, ModuleNotFoundError) as error:
        return f"no report: {error}"
    return f"memory beside the least possible, latency and staleness over time: {recorded.parent / PAGE}"


def _console(stack: ExitStack, running: System) -> str:
    """Serve the page, read-only, until all is over; answers where it is. The demonstration goes on without it."""
    try:
        url = stack.enter_context(parts().served(lambda: running, HOST, 0))
    except DsmsError as error:
        return f"no console: {error}"
    return f"in the browser: {url}"


def _told(running: System) -> list[dict[str, Any]]:
    """What came of the phases; then the system is taken down."""
    domain = running.ask("status")["domains"][0]
    if domain["error"]:
        raise FailedError(domain["error"])
    with undisturbed():
        try:
            running.ask("down", timeout=DOWN)
        except FailedError as error:  # what has been shown stands; Ray ends what is left
            log.warning("%s", error)
    return [phase for phase in domain["phases"] if phase["reason"] == TURN]


def _drain(running: System, never: Event) -> None:
    """Wait until nothing is held."""
    begun = stopwatch()
    while held := sum(one["held"] for one in running.ask("status")["domains"]):
        if stopwatch() - begun > DRAIN:
            raise FailedError(f"{held:,.0f} rows are still held {DRAIN:g} s after the last came")
        never.wait(GLANCE)
