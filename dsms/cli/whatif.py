"""Compare a recorded run with its simulation, and replay it under other policies, in virtual time.

The first table begins with the figures that a simulation predicts: the recorded rows at the instants at which they were
due, their measured costs, and turns of one tuple. Each line below adds what one cause contributes: the slice of turns,
rows that were admitted late, dead time between turns, hops between hosts, and work that took longer than its cost.

The second table begins with the recorded run, as measured: each phase and the whole. Then come a replay of the same
policies at the same instants, which shows how accurate a replay is, and each policy of --policy, from the beginning.
Columns: see `dsms sim`; p99 is at most 12 % off. The replay uses the average selectivity of operators with state, such
as windows and joins, and the average dead time of a live run; it runs all queries from the beginning to the end, also
those added or removed in between.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.cli.arguments import parse_nonnegative, parse_policy_list
from dsms.cli.progress import show_time_bar
from dsms.cli.tables import format_cell, format_number, format_percent, format_seconds, make_table, show
from dsms.policies.registry import policy_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from dsms.recording.prediction import Prediction
    from dsms.recording.what_if import WhatIf

PREDICTION_COLUMNS = ("", "memory mean", "latency", "p99", "stale")
COLUMNS = ("memory mean", "max", "latency", "p99", "stale", "results", "turns")


def options(parser: argparse.ArgumentParser) -> None:
    there_are = ", ".join(policy_names())
    parser.add_argument(
        "recording", metavar="DIR", type=Path, help="a folder that --record has written: one run, or several"
    )
    parser.add_argument(
        "--policy",
        metavar="NAME[:key=value,…],…",
        action="extend",
        type=parse_policy_list,
        default=[],
        help=f"policies to replay the run under; may be repeated. There are: {there_are}",
    )
    parser.add_argument(
        "--until", type=parse_nonnegative, metavar="T", help="replay the run up to time T only, by its own clock"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(given: argparse.Namespace) -> int:
    from dsms.recording import read_recordings  # pyarrow loads slowly: only for commands that read files
    from dsms.recording.what_if import what_if

    found = [what_if(one, given.policy, given.until, show_time_bar) for one in read_recordings(given.recording)]
    if given.json:
        print(json.dumps({"recordings": [one.to_json() for one in found]}, allow_nan=False))
        return 0
    for one in found:
        if one.prediction is not None:
            show(_prediction_table(one, one.prediction))
        show(_table(one.to_json()))
    return 0


def _prediction_table(found: WhatIf, prediction: Prediction) -> Table:
    time = format_number if found.recording.about["clock"] == "virtual" else format_seconds
    overhead, notes = found.overhead, []
    if overhead.turns:
        dead, hop = format_seconds(overhead.turn), format_seconds(overhead.hop)
        notes.append(f"a turn took {dead} besides its work, a hop {hop}")
        notes.append(f"work took {overhead.stretch:.3g} times its cost")
    title = f"{found.recording.folder}: predicted and happened"
    shown = make_table(title, PREDICTION_COLUMNS, left=("",), caption="; ".join(notes))
    formats = (format_number, time, time, format_percent)
    for title, figures, is_added in prediction.rows():
        values = zip(formats, figures.values(), strict=True)
        shown.add_row(title, *(_format_added(form, value) if is_added else form(value) for form, value in values))
    return shown


def _format_added(form: Callable[[float | None], str], value: float | None) -> str:
    return form(value) if value is None else f"{'+' if value >= 0 else '−'}{form(abs(value))}"


def _table(found: dict[str, Any]) -> Table:
    title = f"{found['recording']} ({found['runtime']} of {found['plan']}, {found['clock']} clock)"
    notes = [] if found["complete"] else ["the recording is incomplete: all runs are cut where it ends"]
    shown = make_table(title, ("policy", *COLUMNS), left=("policy",), caption="; ".join(notes))
    was, virtual = found["recorded"], found["clock"] == "virtual"
    policies = [phase["policy"] for phase in was["phases"]]
    ran = policies[0] if len(policies) == 1 else f"{len(policies)} phases"
    rows = [(f"recorded ({ran})", was)]
    if len(policies) > 1:
        rows += [(f"  {phase['policy']}, from {phase['since']:.4g}", phase) for phase in was["phases"]]
    if found["replayed"] is not None:
        rows.append((f"replayed ({ran})", found["replayed"]))
    for name, figures in [*rows, *((one["policy"], one) for one in found["policies"])]:
        shown.add_row(format_cell(name), *_cells(figures, virtual))
    return shown


def _cells(figures: dict[str, Any], virtual: bool) -> tuple[str, ...]:
    time = format_number if virtual else format_seconds
    held = (format_number(figures["memory_mean"]), format_number(figures["memory_max"]))
    late = (time(figures["latency_mean"]), time(figures["latency_p99"]))
    return (*held, *late, format_percent(figures["staleness"]), f"{figures['results']:,}", f"{figures['turns']:,}")
