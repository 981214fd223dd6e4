"""Replay a recorded run under other policies, in virtual time, with the recorded arrivals and costs.

Rows: recorded: the measurements, of each phase and of the whole run; replayed: the same policies at the same instants,
which shows how accurate a replay is; then each policy of --policy, from the beginning. Columns: see `dsms sim`; p99 is
at most 12 % off. The replay uses the average selectivity of operators with state, such as windows and joins, and the
average time between two turns of a live run; it runs all queries from the beginning to the end, also those added or
removed in between.
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
    from rich.table import Table

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
        required=True,
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
        show(_table(one.to_json()))
    return 0


def _table(found: dict[str, Any]) -> Table:
    title = f"{found['recording']} ({found['runtime']} of {found['plan']}, {found['clock']} clock)"
    notes = [] if found["complete"] else ["the recording is incomplete: all runs are cut where it ends"]
    notes += [f"a turn took {format_seconds(found['overhead'])} besides its work"] if found["overhead"] else []
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
