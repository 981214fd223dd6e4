"""Run a plan's queries on real rows in this process: files in, files out.

Sources and sinks are those of the plan (`source = { csv = "bids.csv" }`, `sink = { jsonl = "out.jsonl" }`; also
parquet); a query without a sink writes JSON lines to standard output. Each result has its `ts`, and a `sign` (1 or -1)
where rows may be taken back. What was done is said on standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dsms.cli.arguments import plan_and_policy, recording, several
from dsms.errors import PolicyError

ROWS = 10_000


def options(parser: argparse.ArgumentParser) -> None:
    plan_and_policy(parser, "the scheduling policy (default: fifo)")
    parser.add_argument("--batch", type=several, metavar="N", default=ROWS, help=f"rows in a batch (default: {ROWS})")
    parser.add_argument(
        "--dead-letters",
        metavar="FILE",
        type=Path,
        help='where rows go that are late, or wrong if the plan says on_error = "dead-letter" '
        "(default: PLAN.dead.jsonl beside the plan)",
    )
    recording(parser)
    parser.add_argument("--json", action="store_true", help="say what was done as one JSON object")


def run(given: argparse.Namespace) -> int:
    from dsms import execution  # pyarrow takes its time: only for those who read files
    from dsms.files import SinkClosedError

    policies = given.policy or ["fifo"]
    if len(policies) > 1:
        raise PolicyError(f"a run has one policy: give one --policy, not {len(policies)}")
    try:
        with _progress() as tell:
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
    put = ", ".join(f"{count:,} of {name}" for name, count in done.results.items()) or "none"
    said = [f"rows: {read} in {done.seconds:.2f} s; results: {put}"]
    said += [f"{rows:,} rows {kind} at {where}: see {done.dead_letters}" for (where, kind), rows in done.aside.items()]
    said += ["stopped before the end of the sources"] if done.stopped else []
    print("\n".join(f"dsms: {line}" for line in said), file=sys.stderr)
    return 130 if done.stopped else 0


@contextmanager
def _progress() -> Iterator[Callable[[int, float], None] | None]:
    """How far it is, on standard error for people who wait; nothing where nobody watches."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} rows, {task.fields[rate]:,.0f} a second"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate=0.0)
        yield lambda rows, now: bar.update(task, completed=rows, rate=rows / max(now, 1e-9))
