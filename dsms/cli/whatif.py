"""What other policies would have made of a recorded run: what came and what it cost, replayed in virtual time.

Rows: recorded: what was measured, each phase and the whole; replayed: the same policies at the same instants, which
shows how near a replay comes; then each policy asked for, from the beginning. Columns as of `dsms sim`; p99 is at most
12 % off. Operators with state, as windows and joins, pass on what they did on average, and queries that came or went
are there all the time. Between the turns of a live run passes what passed on average.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.table import Table

from dsms.cli.arguments import number, policy_list
from dsms.cli.bar import time_bar
from dsms.cli.tables import cell, figure, percent, seconds, show, table
from dsms.policies.registry import policy_names

COLUMNS = ("memory mean", "max", "latency", "p99", "stale", "results", "turns")


def options(parser: argparse.ArgumentParser) -> None:
    there_are = ", ".join(policy_names())
    parser.add_argument("recording", metavar="DIR", type=Path, help="what --record has written: a run, or several")
    parser.add_argument(
        "--policy",
        metavar="NAME[:key=value,…],…",
        action="extend",
        type=policy_list,
        required=True,
        help=f"policies to replay it under; may be repeated. There are: {there_are}",
    )
    parser.add_argument("--until", type=number, metavar="T", help="look at the run up to T only, by its own clock")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(given: argparse.Namespace) -> int:
    from dsms.recording import read  # pyarrow takes its time: only for those who read files
    from dsms.recording.whatif import what_if

    found = [what_if(one, given.policy, given.until, time_bar) for one in read(given.recording)]
    if given.json:
        print(json.dumps({"recordings": [one.to_json() for one in found]}, allow_nan=False))
        return 0
    for one in found:
        show(_table(one.to_json()))
    return 0


def _table(found: dict[str, Any]) -> Table:
    said = f"{found['recording']} ({found['runtime']} of {found['plan']}, {found['clock']} clock)"
    notes = [] if found["complete"] else ["the recording is not complete: all are cut where it ends"]
    notes += [f"a turn took {seconds(found['overhead'])} besides its work"] if found["overhead"] else []
    shown = table(said, ("policy", *COLUMNS), left=("policy",), caption="; ".join(notes))
    was, virtual = found["recorded"], found["clock"] == "virtual"
    policies = [phase["policy"] for phase in was["phases"]]
    ran = policies[0] if len(policies) == 1 else f"{len(policies)} phases"
    rows = [(f"recorded ({ran})", was)]
    if len(policies) > 1:
        rows += [(f"  {phase['policy']}, from {phase['since']:.4g}", phase) for phase in was["phases"]]
    if found["replayed"] is not None:
        rows.append((f"replayed ({ran})", found["replayed"]))
    for name, figures in [*rows, *((one["policy"], one) for one in found["policies"])]:
        shown.add_row(cell(name), *_cells(figures, virtual))
    return shown


def _cells(figures: dict[str, Any], virtual: bool) -> tuple[str, ...]:
    time = figure if virtual else seconds
    held = (figure(figures["memory_mean"]), figure(figures["memory_max"]))
    late = (time(figures["latency_mean"]), time(figures["latency_p99"]))
    return (*held, *late, percent(figures["staleness"]), f"{figures['results']:,}", f"{figures['turns']:,}")
