"""Run a plan in virtual time under one or more policies and compare them.

Columns: memory max, mean: tuples in the queues; latency, p99: from the moment all that a result needs is in the system
to the result; stale: share of time a query's output was behind its input, mean over queries; wait: the longest any
tuple stood in one queue; results: how many left; turns: how often the scheduler chose; switches: how often it chose
another segment than the time before.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from pathlib import Path

from rich.table import Table

from dsms.advice.why import Decision, why
from dsms.cli.arguments import number, plan_and_policy, positive, recording, whole
from dsms.cli.bar import time_bar
from dsms.cli.tables import cell, figure, show, table
from dsms.cli.why import show_decision
from dsms.engine import RunnerFactory
from dsms.errors import DsmsError, PolicyError, existing
from dsms.plan import Plan
from dsms.planfile import read_plan
from dsms.policies.registry import policy_named
from dsms.simulate import Run, simulate

DEFAULT = ("fifo",)
COLUMNS = ("memory max", "mean", "latency", "p99", "stale", "wait", "results", "turns", "switches")


def options(parser: argparse.ArgumentParser) -> None:
    plan_and_policy(parser, "a scheduling policy, as in rr:tuples=30; repeat to compare (default: fifo)")
    parser.add_argument("--until", type=number, metavar="T", help="arrivals after T are not admitted")
    parser.add_argument("--cut", action="store_true", help="stop at T instead of draining the queues")
    parser.add_argument("--seed", type=whole, metavar="N", help="draw arrivals and fates anew")
    parser.add_argument(
        "--sample", type=positive, metavar="DT", help="sample the tuples in memory every DT (see --json)"
    )
    parser.add_argument("--trace", metavar="FILE", help="write one JSON line a turn; needs a single policy")
    recording(parser)
    parser.add_argument(
        "--why", type=number, metavar="T", help="show the decision in force at T; needs a single policy"
    )
    parser.add_argument("--runner", metavar="NAME", default="inline", help="who does the work: inline (default) or ray")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(given: argparse.Namespace) -> int:
    wanted = given.policy or list(DEFAULT)
    for text in wanted:
        policy_named(text)  # a typing error in the last of them should not cost the runs before it
    if given.trace and len(wanted) > 1:
        raise PolicyError(f"--trace writes the turns of one run: give one --policy, not {len(wanted)}")
    if given.why is not None and len(wanted) > 1:
        raise PolicyError(f"--why shows a decision of one run: give one --policy, not {len(wanted)}")
    if given.trace and Path(given.trace).resolve() == Path(given.plan).resolve():
        raise DsmsError(f"--trace {given.trace} would overwrite the plan")
    if given.record:
        _check_recording(given.record, wanted)
    plan = read_plan(given.plan)
    runner = _runner(given.runner)
    runs = [_simulated(plan, text, given, runner) for text in wanted]
    asked = None if given.why is None else _asked(plan, wanted[0], given, runner)
    if given.json:
        seed = plan.settings.seed if given.seed is None else given.seed
        found = {"plan": given.plan, "seed": seed, "runs": [r.to_json() for r in runs]}
        print(json.dumps(found if asked is None else {**found, "why": asked.to_json()}, allow_nan=False))
        return 0
    show(_table(plan, runs))
    if asked is not None:
        show_decision(asked)
    return 0


def _check_recording(folder: Path, wanted: list[str]) -> None:
    """What stands in the way of the last recording should not cost the runs before it."""
    from dsms.recording.about import safe_name
    from dsms.recording.parts import check_free

    names = [safe_name(text) for text in wanted]
    for name in names:
        if names.count(name) > 1:
            raise PolicyError(f"--record: {names.count(name)} runs would be written to {str(folder / name)!r}")
        check_free(folder / name)


def _simulated(plan: Plan, text: str, given: argparse.Namespace, runner: RunnerFactory | None) -> Run:
    until = plan.settings.until if given.until is None else given.until
    with time_bar(text, until) as tell:
        return simulate(
            plan,
            text,
            until=given.until,
            cut=given.cut,
            seed=given.seed,
            sample=given.sample,
            trace=given.trace,
            record=given.record,
            runner=runner,
            progress=tell,
        )


def _asked(plan: Plan, text: str, given: argparse.Namespace, runner: RunnerFactory | None) -> Decision:
    return why(plan, text, given.why, until=given.until, cut=given.cut, seed=given.seed, runner=runner)


def _table(plan: Plan, runs: list[Run]) -> Table:
    counts = f"queries: {len(plan.queries)}, operators: {len(plan.stations)}"
    caption = "memory in tuples, times in the plan's unit; `dsms sim --help` explains the columns"
    shown = table(f"{plan.name} ({counts})", ("policy", *COLUMNS), left=("policy",), caption=caption)
    for r in runs:
        shown.add_row(
            cell(r.policy),
            figure(r.memory.tuples.max),
            figure(r.memory.tuples.mean),
            figure(r.latency.mean),
            figure(r.latency.p99),
            "–" if r.staleness.mean is None else f"{r.staleness.mean:.1%}",
            figure(r.longest_wait),
            figure(r.outputs),
            f"{r.turns:,}",
            f"{r.switches:,}",
        )
    return shown


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
