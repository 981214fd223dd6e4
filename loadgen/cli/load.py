"""Push a plan's load into a live system, from Spark: rows are due as the plan's arrivals say, and go when they are.

It is an open loop: a system that cannot keep up is not waited for, and latencies count from when a row was due, so none
of its delay is hidden. A load that was stopped goes on from its --checkpoint; what is overdue by then goes at once.
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

from dsms.cli.arguments import number, positive, several, whole
from dsms.cli.stopping import stoppable, undisturbed
from dsms.cli.tables import percent, seconds
from dsms.cli.telling import progress
from dsms.client import Client, connect
from dsms.clock import epoch
from dsms.errors import DsmsError, FailedError, existing
from loadgen.cli.starting import master, spark
from loadgen.load import Recipe, load_of
from loadgen.pace import GRAIN, Delivery

if TYPE_CHECKING:
    from loadgen.drive import Drive

GLANCE = 0.25  # seconds between two looks at how far it is
LINE = 5.0  # and between two lines about it, where nobody watches
SPARE, TRIES = 2, 4  # tasks besides those that push; how often one is tried
ENDING = 30.0  # seconds for the ends of streams to be acknowledged

Show = Callable[[int, Delivery], None]  # rows that were due so far, and what was delivered


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="a plan file (TOML) whose streams have `arrivals` and a `schema`")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--rate", type=positive, metavar="R", help="rows a second, of all streams together, in the mean")
    much.add_argument("--utilisation", type=positive, metavar="U", help="so much of the CPU budget, by declared costs")
    parser.add_argument("--duration", type=positive, metavar="D", help="seconds; without it, until the arrivals end")
    parser.add_argument("--speedup", type=positive, metavar="X", default=1.0, help="seconds of the load in one second")
    parser.add_argument(
        "--since", type=number, metavar="T", default=0.0, help="what timestamps in the rows count from (default: 0)"
    )
    parser.add_argument("--stream", metavar="NAME", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--seed", type=whole, metavar="N", help="where chance starts (default: the plan's)")
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="of the gateway (default: $DSMS_ADDRESS, or 127.0.0.1:7411)"
    )
    parser.add_argument(
        "--grain",
        type=positive,
        metavar="S",
        default=GRAIN,
        help=f"rows due within S seconds go together (default: {GRAIN:g})",
    )
    parser.add_argument("--partitions", type=several, metavar="N", default=1, help="tasks that a window is made by")
    parser.add_argument("--checkpoint", metavar="DIR", type=Path, help="where it is written down how far the load is")
    parser.add_argument("--end", action="store_true", help="say at the end that nothing more comes by these streams")
    master(parser)


def run(given: argparse.Namespace) -> int:
    recipe = Recipe.of(
        given.plan,
        streams=tuple(given.stream),
        rate=given.rate,
        utilisation=given.utilisation,
        duration=given.duration,
        speedup=given.speedup,
        since=given.since,
        seed=given.seed,
    )
    load = load_of(recipe)  # what is wrong with it needs no Spark to be found
    if given.checkpoint is not None and given.checkpoint.exists() and not given.checkpoint.is_dir():
        raise DsmsError(f"--checkpoint {given.checkpoint}: it is a file; a folder, there or not, is wanted")
    with stoppable(), connect(given.address) as client:
        _refuse_unlike(client, recipe)
        delivery = _driven(given, recipe)
        if given.end and delivery is not None:
            for source in load.sources:
                client.end(source.name)
            client.flush(ENDING)
    return 130 if delivery is None else 0


def _driven(given: argparse.Namespace, recipe: Recipe) -> Delivery | None:
    """Start Spark, and see the load through; None if it was stopped on the way."""
    from loadgen.drive import LANES, Drive, Way  # these load Spark

    way = Way(given.address or "", grain=given.grain, partitions=given.partitions)
    with ExitStack() as stack:
        with progress() as tell:
            room = f"local[{LANES * given.partitions + SPARE},{TRIES}]"  # a task that waits must not keep another out
            session = stack.enter_context(spark(given.master or room, tell))
            drive = stack.enter_context(Drive(session, recipe, way, given.checkpoint))
            tell("warming Spark up")
            drive.warm()
            drive.start()
        stopped = _watched(drive)
        with undisturbed():
            drive.stop()
            _, delivery = drive.delivered()
            wanted = None if stopped else drive.load.due(0.0, drive.load.end)
            _say(delivery, wanted, min(drive.load.end / drive.load.speedup, epoch() - drive.begun))
    if wanted is not None and delivery.rows != wanted:
        raise FailedError(f"{delivery.rows:,} rows were delivered, and {wanted:,} were due")
    return None if stopped else delivery


def _watched(drive: Drive) -> bool:
    """Show how far it is until it is done; True if Ctrl-C came first."""
    offered, upto = 0, 0.0
    looking = Event()
    try:
        with _shown(drive) as show:
            while True:
                drive.check()
                windows, delivery = drive.delivered()
                now = epoch()
                offered, upto = offered + drive.offered(upto, now), now
                show(offered, delivery)
                if windows >= drive.windows:
                    return False
                looking.wait(GLANCE)
    except KeyboardInterrupt:
        return True


@contextmanager
def _shown(drive: Drive) -> Iterator[Show]:
    """A bar for people who wait, a line now and then for files."""
    load = drive.load
    total = None if math.isinf(load.end) else load.due(0.0, load.end)
    if not sys.stderr.isatty():
        last = epoch()

        def line(offered: int, delivery: Delivery) -> None:
            nonlocal last
            if epoch() - last >= LINE:
                last = epoch()
                print(f"dsms: {_fares(offered, delivery)}", file=sys.stderr, flush=True)

        yield line
        return
    columns = (TextColumn("load"), BarColumn(), TextColumn("{task.fields[fares]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("load", total=total, fares="")
        yield lambda offered, delivery: bar.update(task, completed=offered, fares=_fares(offered, delivery))


def _fares(offered: int, delivery: Delivery) -> str:
    return f"{offered:,} rows due, {delivery.rows:,} acknowledged, the latest sent {seconds(delivery.late)} late"


def _say(delivery: Delivery, wanted: int | None, length: float) -> None:
    """What came of it in so many seconds, on standard output."""
    print(f"delivered: {delivery.rows:,} rows" + ("" if wanted is None else f" of {wanted:,}") + " acknowledged")
    if not delivery.rows:
        return
    offered, mean = delivery.rows / max(length, 1e-9), delivery.lateness / delivery.rows
    print(f"offered: {offered:,.0f} rows a second in the mean, {max(delivery.due.values()):,} in the fullest")
    print(f"sent late: {seconds(mean)} in the mean, {seconds(delivery.late)} at most")
    print(f"in another second than due: {percent(delivery.misplaced)}")


def _refuse_unlike(client: Client, recipe: Recipe) -> None:
    """Refuse a load whose streams the system at the other end does not have, or has with other columns."""
    for each in load_of(recipe).sources:
        theirs = client.streams.get(each.name)
        if theirs is None:
            raise DsmsError(f"the system has no stream {each.name!r}{existing(each.name, client.streams)}")
        if theirs != each.schema:
            raise DsmsError(
                f"stream {each.name!r} has the columns {dict(theirs.fields)} in the system and "
                f"{dict(each.schema.fields)} in {recipe.file}: they must be the same"
            )
