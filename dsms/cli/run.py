"""Run a plan's queries on real rows in this process: files in, files out.

The plan names sources and sinks (`source = { csv = "bids.csv" }`, `sink = { jsonl = "out.jsonl" }`; also parquet); a
query without a sink writes JSON lines to standard output. Each result has a `ts`, and a `sign` if results can be
retracted: 1 for a new row, -1 for a retracted one. A summary goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dsms.cli.arguments import add_plan_and_policy, add_record_option, parse_positive_int
from dsms.errors import PolicyError

ROWS_PER_BATCH = 10_000


def options(parser: argparse.ArgumentParser) -> None:
    add_plan_and_policy(parser, "the scheduling policy (default: fifo)")
    parser.add_argument(
        "--batch",
        type=parse_positive_int,
        metavar="N",
        default=ROWS_PER_BATCH,
        help=f"rows in a batch (default: {ROWS_PER_BATCH})",
    )
    parser.add_argument(
        "--dead-letters",
        metavar="FILE",
        type=Path,
        help='file for late rows and, if the plan says on_error = "dead-letter", for rows that an operator fails on '
        "(default: PLAN.dead.jsonl beside the plan)",
    )
    add_record_option(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def run(given: argparse.Namespace) -> int:
    from dsms import run_plan as execution  # pyarrow loads slowly: only for commands that read files
    from dsms.io import SinkClosedError

    policies = given.policy or ["fifo"]
    if len(policies) > 1:
        raise PolicyError(f"a run has one policy: give one --policy, not {len(policies)}")
    try:
        with _show_progress() as tell:
            done = execution.run(
                given.plan,
                policies[0],
                rows=given.batch,
                dead_letters=given.dead_letters,
                record=given.record,
                progress=tell,
            )
    except SinkClosedError as error:
        raise BrokenPipeError from error
    if given.json:
        print(json.dumps(done.to_json(), allow_nan=False), file=sys.stderr)
        return 130 if done.stopped else 0
    read = ", ".join(f"{count:,} of {name}" for name, count in done.rows.items()) or "none"
    written = ", ".join(f"{count:,} of {name}" for name, count in done.results.items()) or "none"
    lines = [f"rows: {read} in {done.seconds:.2f} s; results: {written}"]
    lines += [
        f"{rows:,} rows {kind} at {where}: see {done.dead_letters}" for (where, kind), rows in done.rejected.items()
    ]
    lines += ["stopped before the end of the sources"] if done.stopped else []
    print("\n".join(f"dsms: {line}" for line in lines), file=sys.stderr)
    return 130 if done.stopped else 0


@contextmanager
def _show_progress() -> Iterator[Callable[[int, float], None] | None]:
    """Show rows and rows a second on standard error, if it is a terminal and standard output is none."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} rows, {task.fields[rate]:,.0f} a second"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate=0.0)
        yield lambda rows, now: bar.update(task, completed=rows, rate=rows / max(now, 1e-9))
