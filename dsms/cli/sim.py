"""Run a plan in virtual time under one or more policies and compare them.

Columns: memory max, mean: tuples in the queues; latency, p99: from the moment all that a result needs is in the system
to the result; stale: share of time a query's output was behind its input, mean over queries; wait: the longest any
tuple stood in one queue; results: how many left; turns: how often the scheduler chose; switches: how often it chose
another segment than the time before.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dsms.engine import RunnerFactory
from dsms.errors import DsmsError, PolicyError, existing
from dsms.plan import Plan
from dsms.planfile import read_plan
from dsms.policies.registry import policy_named, policy_names
from dsms.simulate import Run, simulate

Number = TypeVar("Number", int, float)
DEFAULT = ("fifo",)
COLUMNS = ("memory max", "mean", "latency", "p99", "stale", "wait", "results", "turns", "switches")


def options(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(policy_names())
    parser.add_argument("plan", metavar="PLAN", help="a plan file (TOML)")
    parser.add_argument(
        "--policy",
        metavar="NAME[:key=value,…]",
        action="append",
        help=f"a scheduling policy, as in rr:tuples=30; repeat to compare (default: fifo). There are: {names}",
    )
    parser.add_argument("--until", type=_number, metavar="T", help="arrivals after T are not admitted")
    parser.add_argument("--cut", action="store_true", help="stop at T instead of draining the queues")
    parser.add_argument("--seed", type=_seed, metavar="N", help="draw arrivals and fates anew")
    parser.add_argument(
        "--sample", type=_positive, metavar="DT", help="sample the tuples in memory every DT (see --json)"
    )
    parser.add_argument("--trace", metavar="FILE", help="write one JSON line a turn; needs a single policy")
    parser.add_argument("--runner", metavar="NAME", default="inline", help="who does the work: inline (default) or ray")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(given: argparse.Namespace) -> int:
    wanted = given.policy or list(DEFAULT)
    for text in wanted:
        policy_named(text)  # a typing error in the last of them should not cost the runs before it
    if given.trace and len(wanted) > 1:
        raise PolicyError(f"--trace writes the turns of one run: give one --policy, not {len(wanted)}")
    if given.trace and Path(given.trace).resolve() == Path(given.plan).resolve():
        raise DsmsError(f"--trace {given.trace} would overwrite the plan")
    plan = read_plan(given.plan)
    runner = _runner(given.runner)
    runs = [_simulated(plan, text, given, runner) for text in wanted]
    if given.json:
        seed = plan.settings.seed if given.seed is None else given.seed
        print(json.dumps({"plan": given.plan, "seed": seed, "runs": [r.to_json() for r in runs]}, allow_nan=False))
    else:
        console = Console()
        table = _table(plan, runs)
        # A narrow window wraps whole lines rather than cutting every column.
        console.width = max(console.width, Measurement.get(console, console.options.update(width=1000), table).maximum)
        with console.capture() as written:
            console.print(table)
        print(written.get(), end="")
    return 0


def _simulated(plan: Plan, text: str, given: argparse.Namespace, runner: RunnerFactory | None) -> Run:
    until = plan.settings.until if given.until is None else given.until
    with _progress(text, until) as tell:
        return simulate(
            plan,
            text,
            until=given.until,
            cut=given.cut,
            seed=given.seed,
            sample=given.sample,
            trace=given.trace,
            runner=runner,
            progress=tell,
        )


@contextmanager
def _progress(text: str, until: float | None) -> Iterator[Callable[[float], None] | None]:
    """A bar on standard error for people who wait; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("t = {task.fields[now]:g}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=until, now=0.0)
        yield lambda now: bar.update(task, completed=min(now, until or now), now=now)


def _table(plan: Plan, runs: list[Run]) -> Table:
    counts = f"queries: {len(plan.queries)}, operators: {len(plan.stations)}"
    table = Table(title=f"{escape(plan.name)} ({counts})", box=SIMPLE_HEAD)
    table.add_column("policy", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for r in runs:
        table.add_row(
            escape(r.policy),
            _figure(r.memory.tuples.max),
            _figure(r.memory.tuples.mean),
            _figure(r.latency.mean),
            _figure(r.latency.p99),
            "–" if r.staleness.mean is None else f"{r.staleness.mean:.1%}",
            _figure(r.longest_wait),
            _figure(r.outputs),
            f"{r.turns:,}",
            f"{r.switches:,}",
        )
    table.caption = "memory in tuples, times in the plan's unit; `dsms sim --help` explains the columns"
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _runner(name: str) -> RunnerFactory | None:
    if name == "inline":
        return None
    points = {point.name: point for point in entry_points(group="dsms.runners")}
    if name not in points:
        raise DsmsError(f"no runner {name!r}{existing(name, ['inline', *points])}")
    try:
        loaded: RunnerFactory = points[name].load()
    except ImportError as error:
        raise DsmsError(f"runner {name!r} cannot be loaded: {error}; install dsms[{name}]") from None
    return loaded


def _number(text: str) -> float:
    value = _parsed(float, text, "a number from 0")
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0")
    return value


def _positive(text: str) -> float:
    value = _parsed(float, text, "a positive number")
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _seed(text: str) -> int:
    value = _parsed(int, text, "a whole number from 0")
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return value


def _parsed(kind: type[Number], text: str, wanted: str) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}") from None
