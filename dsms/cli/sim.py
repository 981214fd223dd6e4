"""Run a plan in virtual time under one or more policies and compare them.

Columns: memory max, mean: tuples in the queues; latency, p99: from the arrival of the last tuple that a result needs
to the result; stale: share of time that a query's output was behind its input, mean over queries; wait: the longest
time any tuple spent in one queue; results: tuples put out; turns: decisions of the scheduler; switches: decisions for
another segment than the one before.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from dsms.advice.why import Decision, why
from dsms.cli.arguments import (
    add_plan_and_policy,
    add_record_option,
    parse_dead_time,
    parse_nonnegative,
    parse_nonnegative_int,
    parse_positive,
)
from dsms.cli.decision_table import show_decision
from dsms.cli.progress import show_time_bar
from dsms.cli.tables import format_cell, format_number, make_table, show
from dsms.engine.engine import RunnerFactory
from dsms.errors import DsmsError, PolicyError, existing
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named
from dsms.query.plan_file import read_plan
from dsms.simulation import Run, set_dead_time, simulate

if TYPE_CHECKING:
    from rich.table import Table

DEFAULT_POLICIES = ("fifo",)
COLUMNS = ("memory max", "mean", "latency", "p99", "stale", "wait", "results", "turns", "switches")


def options(parser: argparse.ArgumentParser) -> None:
    add_plan_and_policy(parser, "a scheduling policy, as in rr:tuples=30; repeat to compare (default: fifo)")
    parser.add_argument("--until", type=parse_nonnegative, metavar="T", help="admit no arrivals after T")
    parser.add_argument(
        "--cut",
        action="store_true",
        help="stop at the T of --until; without it the run continues until all queues are empty",
    )
    parser.add_argument(
        "--seed",
        type=parse_nonnegative_int,
        metavar="N",
        help="random seed of arrivals and selectivities (default: the plan's)",
    )
    parser.add_argument(
        "--turn-cost",
        type=parse_dead_time,
        metavar="T",
        help="time that each turn takes besides its work, as in 200us; `overhead` in `dsms status --json` is measured",
    )
    parser.add_argument(
        "--hop-cost",
        type=parse_dead_time,
        metavar="T",
        help="time that a turn takes to go on at another host; [live] says how many hosts there are",
    )
    parser.add_argument(
        "--sample", type=parse_positive, metavar="DT", help="sample the tuples in memory every DT (see --json)"
    )
    parser.add_argument("--trace", metavar="FILE", help="write one JSON line for each turn; needs a single policy")
    add_record_option(parser)
    parser.add_argument(
        "--why", type=parse_nonnegative, metavar="T", help="show the decision in force at time T; needs a single policy"
    )
    parser.add_argument(
        "--runner",
        metavar="NAME",
        default="inline",
        help="where operators run: inline, in this process (default), or ray",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(given: argparse.Namespace) -> int:
    policies = given.policy or list(DEFAULT_POLICIES)
    for text in policies:
        policy_named(text)  # reports a misspelt name before the first run, not before the last
    if given.trace and len(policies) > 1:
        raise PolicyError(f"--trace writes the turns of one run: give one --policy, not {len(policies)}")
    if given.why is not None and len(policies) > 1:
        raise PolicyError(f"--why shows a decision of one run: give one --policy, not {len(policies)}")
    if given.trace and Path(given.trace).resolve() == Path(given.plan).resolve():
        raise DsmsError(f"--trace {given.trace} would overwrite the plan")
    if given.record:
        _check_recording(given.record, policies)
    plan = set_dead_time(read_plan(given.plan), given.turn_cost, given.hop_cost)
    runner = _make_runner(given.runner)
    runs = [_simulate(plan, text, given, runner) for text in policies]
    decision = None if given.why is None else _explain_decisions(plan, policies[0], given, runner)
    if given.json:
        seed = plan.settings.seed if given.seed is None else given.seed
        result = {"plan": given.plan, "seed": seed, "runs": [r.to_json() for r in runs]}
        print(json.dumps(result if decision is None else {**result, "why": decision.to_json()}, allow_nan=False))
        return 0
    show(_table(plan, runs))
    if decision is not None:
        show_decision(decision)
    return 0


def _check_recording(folder: Path, policies: list[str]) -> None:
    """Refuse folders that cannot be written to, before the first run."""
    from dsms.recording.manifest import safe_name
    from dsms.recording.part_writer import check_folder_free

    names = [safe_name(text) for text in policies]
    for name in names:
        if names.count(name) > 1:
            raise PolicyError(
                f"--record writes {names.count(name)} policies to {str(folder / name)!r}: name each policy once"
            )
        check_folder_free(folder / name)


def _simulate(plan: Plan, text: str, given: argparse.Namespace, runner: RunnerFactory | None) -> Run:
    until = plan.settings.until if given.until is None else given.until
    with show_time_bar(text, until) as tell:
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


def _explain_decisions(plan: Plan, text: str, given: argparse.Namespace, runner: RunnerFactory | None) -> Decision:
    return why(plan, text, given.why, until=given.until, cut=given.cut, seed=given.seed, runner=runner)


def _table(plan: Plan, runs: list[Run]) -> Table:
    counts = f"queries: {len(plan.queries)}, operators: {len(plan.stations)}"
    caption = "memory in tuples, times in the plan's unit; `dsms sim --help` explains the columns"
    shown = make_table(f"{plan.name} ({counts})", ("policy", *COLUMNS), left=("policy",), caption=caption)
    for r in runs:
        shown.add_row(
            format_cell(r.policy),
            format_number(r.memory.tuples.max),
            format_number(r.memory.tuples.mean),
            format_number(r.latency.mean),
            format_number(r.latency.p99),
            "–" if r.staleness.mean is None else f"{r.staleness.mean:.1%}",
            format_number(r.longest_wait),
            format_number(r.outputs),
            f"{r.turns:,}",
            f"{r.switches:,}",
        )
    return shown


def _make_runner(name: str) -> RunnerFactory | None:
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
