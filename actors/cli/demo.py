"""Compare four policies on a private Ray cluster: four queries, and the same bursty load from Spark for each policy.

Every policy gets the same rows at the same instants and starts with empty queues: the load pauses before the next
policy until all queues are empty, and this time counts for the policy that empties them. After a minute of this a table
shows beside each figure what `dsms sim` predicts for the same arrivals. The command records the run and then writes a
report. Ctrl-C ends it at any time and leaves nothing running.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from rich.table import Table

from actors import demo
from actors.cli.console import HOST, import_console
from actors.cli.live_view import show_live_view
from actors.cli.up import START_STATUS_TIMEOUT_S
from actors.control.client import ControlClient, import_runtime, log
from actors.control.status_tables import format_count, format_rate
from actors.demo.prediction import predict_phase
from dsms.cli.arguments import parse_nonnegative_int, parse_positive
from dsms.cli.progress import show_progress
from dsms.cli.signals import ignore_signals
from dsms.cli.tables import format_percent, format_seconds, make_table, show
from dsms.clock import monotonic_s, wall_time_s
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError, FailedError
from dsms.live.monitor.status import PhaseStatus
from dsms.query.plan_file import read_table

NAME = "demo"
PLAN = Path(demo.__file__).with_name("plan.toml")
POLICIES = ("fifo", "chain", "fas-mcq", "adaptive")
PHASE_LENGTH_S = 12.0
DRAIN_TIMEOUT_S = 60.0  # in which the queues must become empty without new rows
DRAIN_POLL_S = 0.1  # between two checks of the queues
SHUTDOWN_TIMEOUT_S = 15.0
LOAD_LEAD_S = 0.1  # the swap happens this long before the first row of a load
SWAP_REASON = "its turn"
OUT, RECORDED, PAGE = "demo-report", "recorded", "report.html"
CONFIG = {"worker_maximum_startup_concurrency": 8}  # with fewer, Ray prints warnings over the view
COLUMNS = ("policy", "memory mean", "max", "latency mean", "p99", "stale", "results", "turns", "swap")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=parse_positive,
        metavar="S",
        default=PHASE_LENGTH_S,
        help=f"of load per policy (default: {PHASE_LENGTH_S:g})",
    )

    parser.add_argument(
        "--metrics", type=parse_nonnegative_int, metavar="P", help="serve metrics at this port; 0: any free port"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path(OUT),
        help=f"folder of the reports, each in a folder by date (default: {OUT})",
    )


def run(given: argparse.Namespace) -> int:
    plan = read_table(PLAN)
    out = given.out.resolve() / time.strftime("%Y-%m-%d-%H%M%S")
    setup = replace(LiveConfig.read(plan["live"]), metrics=given.metrics, record=str(out / RECORDED))
    cluster = import_runtime("cluster.cluster")
    with import_runtime("cluster.cluster_exit").leave_cluster_on_exit(cluster):
        print(_run_phases(cluster, plan, setup, given.seconds))
    return 0


def compare_policies(phases: Sequence[PhaseStatus], predictions: Sequence[PhaseStatus], length: float) -> Table:
    """A table of the phases' figures, and below each what its simulation predicts."""
    caption = (
        f"{length:g} s of the same load under each policy; memory in rows; stale: share of time, mean over queries"
    )
    table = make_table("", COLUMNS, left=("policy",), caption=caption)
    for phase, prediction in zip(phases, predictions, strict=True):
        table.add_row(phase.policy, *_cells(phase))
        table.add_row("  simulated", *_cells(prediction), style="dim")
    return table


def _cells(phase: PhaseStatus) -> tuple[str, ...]:
    return (
        format_rate(phase.memory_mean),
        format_count(phase.memory_max),
        format_seconds(phase.latency_mean),
        format_seconds(phase.latency_p99),
        format_percent(phase.staleness),
        format_count(phase.results),
        format_count(phase.turns),
        format_seconds(phase.swap_seconds),
    )


def _run_phases(cluster: Any, plan: dict[str, Any], setup: LiveConfig, length: float) -> str:
    """Run the load under each policy and compare them; answers where the report is."""
    from loadgen.spark.driver import Driver, PushTarget  # these load Spark
    from loadgen.spark.session import open_session
    from loadgen.spec.load import LoadSpec

    never, spec = Event(), LoadSpec.of(PLAN, duration=length)
    with ExitStack() as stack:
        with show_progress() as tell:
            tell("starting Spark")
            spark = stack.enter_context(open_session())
            tell("starting Ray")
            cluster.start_local_ray(_system_config=CONFIG)
            handle = import_runtime("control.deploy").up(
                plan, str(PLAN.parent), str(PLAN), name=NAME, setup=setup, progress=tell
            )
            client = ControlClient(NAME, handle)
            address = str(client.status(START_STATUS_TIMEOUT_S).gateways[0].address)
            note = _start_console(stack, client)
            tell(f"{note}; warming up Spark")
            target = PushTarget(address)
            with Driver(spark, spec, target) as drive:
                drive.warm()
        with show_live_view(client, note):
            for policy in POLICIES:
                with Driver(spark, spec, target) as drive:
                    begin = drive.start()
                    never.wait(begin - LOAD_LEAD_S - wall_time_s())
                    client.ask("swap", policy, SWAP_REASON)
                    drive.wait(lambda: never.wait(DRAIN_POLL_S))
                _drain(client, never)
                client.ask("swap", POLICIES[0], "until the next load begins")
        phases = _take_down(client)
        show(compare_policies(phases, [predict_phase(plan, phase.policy, length) for phase in phases], length))
        return _report(spark, Path(str(setup.record)))


def _report(spark: Any, recorded: Path) -> str:
    """Write the report of a recording; answers where it is. The phases between two loads are not compared.

    If the report cannot be written (no drawing library, full disk), the demonstration still shows its table.
    """
    from loadgen.report.report import write_report

    try:
        with show_progress() as tell:
            write_report(spark, [recorded], recorded.parent, tell, SWAP_REASON)
    except (DsmsError, ModuleNotFoundError) as error:
        return f"no report: {error}"
    return f"report of memory (and its lower bound), latency and staleness over time: {recorded.parent / PAGE}"


def _start_console(stack: ExitStack, client: ControlClient) -> str:
    """Serve the read-only console until the demonstration ends; answers its address, or why there is none."""
    try:
        url = stack.enter_context(import_console().serve(lambda: client, HOST, 0))
    except DsmsError as error:
        return f"no console: {error}"
    return f"in the browser: {url}"


def _take_down(client: ControlClient) -> list[PhaseStatus]:
    """End the deployment; answers the phases under load."""
    domain = client.status().domains[0]
    if domain.error:
        raise FailedError(domain.error)
    with ignore_signals():
        try:
            client.ask("down", timeout=SHUTDOWN_TIMEOUT_S)
        except FailedError as error:  # the figures are valid; Ray ends the remaining actors
            log.warning("%s", error)
    return [phase for phase in domain.phases if phase.reason == SWAP_REASON]


def _drain(client: ControlClient, never: Event) -> None:
    """Wait until all queues are empty."""
    begun = monotonic_s()
    while held := sum(one.held or 0 for one in client.status().domains):
        if monotonic_s() - begun > DRAIN_TIMEOUT_S:
            raise FailedError(f"{held:,.0f} rows are still in queues {DRAIN_TIMEOUT_S:g} s after the last arrived")
        never.wait(DRAIN_POLL_S)
