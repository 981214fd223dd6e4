"""Generate a plan's load with Spark, and push each row into a live system when the plan's arrivals say it is due.

The loop is open: the load does not wait for a system that cannot keep up, and latencies count from when a row was due.
A stopped load resumes from its --checkpoint and then sends overdue rows at once.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from dsms.cli.arguments import parse_nonnegative, parse_nonnegative_int, parse_positive, parse_positive_int
from dsms.cli.progress import show_progress
from dsms.cli.signals import ignore_signals
from dsms.cli.tables import format_percent, format_seconds
from dsms.clock import wall_time_s
from dsms.errors import DsmsError, FailedError, existing
from dsms.net.client import Client, connect
from loadgen.cli.spark_session import add_master_option, start_spark
from loadgen.push.pacing import GRAIN_S, SendStats
from loadgen.spec.load import LoadSpec, make_load

if TYPE_CHECKING:
    from loadgen.spark.driver import Driver

PROGRESS_INTERVAL_S = 0.25  # between two updates of the progress bar
LOG_LINE_INTERVAL_S = 5.0  # between two log lines, without a terminal
SPARE_TASKS, TASK_ATTEMPTS = 2, 4  # task slots besides the pushing ones; attempts per task
END_TIMEOUT_S = 30.0  # for the ends of streams to be acknowledged

Show = Callable[[int, SendStats], None]  # called with the number of rows due so far, and the counts of delivered rows


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="a plan file (TOML) whose streams have `arrivals` and a `schema`")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--rate", type=parse_positive, metavar="R", help="mean rows per second of all streams together")
    size.add_argument(
        "--utilisation", type=parse_positive, metavar="U", help="share of the CPU budget to use, by declared costs"
    )
    parser.add_argument(
        "--duration", type=parse_positive, metavar="D", help="seconds to push (default: until the arrivals end)"
    )
    parser.add_argument(
        "--speedup",
        type=parse_positive,
        metavar="X",
        default=1.0,
        help="push X seconds of the load per second (default: 1)",
    )
    parser.add_argument(
        "--since",
        type=parse_nonnegative,
        metavar="T",
        default=0.0,
        help="seconds to add to the timestamps in the rows, which begin at 0 (default: 0)",
    )
    parser.add_argument(
        "--stream", metavar="NAME", action="append", default=[], help="push only this stream; may be repeated"
    )
    parser.add_argument("--seed", type=parse_nonnegative_int, metavar="N", help="random seed (default: the plan's)")
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="the gateway (default: $DSMS_ADDRESS, or 127.0.0.1:7411)"
    )
    parser.add_argument(
        "--grain",
        type=parse_positive,
        metavar="S",
        default=GRAIN_S,
        help=f"send rows that are due within S seconds together (default: {GRAIN_S:g})",
    )
    parser.add_argument(
        "--partitions", type=parse_positive_int, metavar="N", default=1, help="Spark tasks per window (default: 1)"
    )
    parser.add_argument("--checkpoint", metavar="DIR", type=Path, help="store the load's progress here, to resume it")
    parser.add_argument("--end", action="store_true", help="end the streams after the last row")
    add_master_option(parser)


def run(given: argparse.Namespace) -> int:
    spec = LoadSpec.of(
        given.plan,
        streams=tuple(given.stream),
        rate=given.rate,
        utilisation=given.utilisation,
        duration=given.duration,
        speedup=given.speedup,
        since=given.since,
        seed=given.seed,
    )
    load = make_load(spec)  # refuses a wrong spec before Spark starts
    if given.checkpoint is not None and given.checkpoint.exists() and not given.checkpoint.is_dir():
        raise DsmsError(f"--checkpoint {given.checkpoint}: is a file; expected a folder, existing or new")
    with connect(given.address) as client:
        _check_streams(client, spec)
        stats = _push(given, spec)
        if given.end and stats is not None:
            for source in load.sources:
                client.end(source.name)
            client.flush(END_TIMEOUT_S)
    return 130 if stats is None else 0


def _push(given: argparse.Namespace, spec: LoadSpec) -> SendStats | None:
    """Start Spark and push the load to its end; None if Ctrl-C stopped it."""
    from loadgen.spark.driver import DEFAULT_LANES, Driver, PushTarget  # these import PySpark

    target = PushTarget(given.address or "", grain=given.grain, partitions=given.partitions)
    with ExitStack() as stack:
        with show_progress() as progress:
            slots = DEFAULT_LANES * given.partitions + SPARE_TASKS  # a waiting task must not keep another from running
            session = stack.enter_context(start_spark(given.master or f"local[{slots},{TASK_ATTEMPTS}]", progress))
            driver = stack.enter_context(Driver(session, spec, target, given.checkpoint))
            progress("warming up Spark")
            driver.warm()
            driver.start()
        stopped = _watch(driver)
        with ignore_signals():
            driver.stop()
            _, stats = driver.read_delivered()
            due = None if stopped else driver.load.count_due(0.0, driver.load.end)
            _print_summary(stats, due, min(driver.load.end / driver.load.speedup, wall_time_s() - driver.begin))
    if due is not None and stats.rows != due:
        raise FailedError(f"Spark delivered {stats.rows:,} of the {due:,} rows that were due")
    return None if stopped else stats


def _watch(driver: Driver) -> bool:
    """Show the progress until the load is done; True if Ctrl-C came first."""
    due, until = 0, 0.0
    pause = Event()
    try:
        with _make_display(driver) as show:
            while True:
                driver.check()
                windows, stats = driver.read_delivered()
                now = wall_time_s()
                due, until = due + driver.count_due(until, now), now
                show(due, stats)
                if windows >= driver.windows:
                    return False
                pause.wait(PROGRESS_INTERVAL_S)
    except KeyboardInterrupt:
        return True


@contextmanager
def _make_display(driver: Driver) -> Iterator[Show]:
    """A progress bar on a terminal, a log line now and then elsewhere."""
    load = driver.load
    total = None if math.isinf(load.end) else load.count_due(0.0, load.end)
    if not sys.stderr.isatty():
        last = wall_time_s()

        def line(due: int, stats: SendStats) -> None:
            nonlocal last
            if wall_time_s() - last >= LOG_LINE_INTERVAL_S:
                last = wall_time_s()
                print(f"dsms: {_format_progress(due, stats)}", file=sys.stderr, flush=True)

        yield line
        return
    columns = (TextColumn("load"), BarColumn(), TextColumn("{task.fields[progress]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("load", total=total, progress="")
        yield lambda due, stats: bar.update(task, completed=due, progress=_format_progress(due, stats))


def _format_progress(due: int, stats: SendStats) -> str:
    return f"{due:,} rows due, {stats.rows:,} acknowledged, sent at most {format_seconds(stats.late)} late"


def _print_summary(stats: SendStats, due: int | None, seconds: float) -> None:
    """Print the counts of the load to standard output."""
    print(f"delivered: {stats.rows:,} rows" + ("" if due is None else f" of {due:,}") + " acknowledged")
    if not stats.rows:
        return
    rate, mean = stats.rows / max(seconds, 1e-9), stats.lateness / stats.rows
    print(f"offered: {rate:,.0f} rows per second on average, {max(stats.due.values()):,} at most")
    print(f"sent late: {format_seconds(mean)} on average, {format_seconds(stats.late)} at most")
    print(f"in another second than due: {format_percent(stats.share_misplaced)}")


def _check_streams(client: Client, spec: LoadSpec) -> None:
    """Refuse a load with streams or columns that the live system does not have."""
    for source in make_load(spec).sources:
        schema = client.streams.get(source.name)
        if schema is None:
            raise DsmsError(f"the live system has no stream {source.name!r}{existing(source.name, client.streams)}")
        if schema != source.schema:
            raise DsmsError(
                f"stream {source.name!r} has the columns {dict(schema.fields)} in the live system and "
                f"{dict(source.schema.fields)} in {spec.file}: they must be the same"
            )
