"""Measures speed beside a peer in the same run, then compares our policies with the papers': `make bench`.

Fails on wrong work only, not on a low figure. Each section has a short form that does little work and checks all of it:
`make test` runs it, and so does `make bench SHORT=1`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.live.checkpoints import checkpoints
from benchmarks.live.fidelity import fidelity
from benchmarks.live.live import LiveSizes, live
from benchmarks.live.metrics_cost import metrics
from benchmarks.live.spark_load import load
from benchmarks.live.swaps import swaps
from benchmarks.policies.beside_paper_policies import against
from benchmarks.policies.freshness import freshness
from benchmarks.queries.join_memory import held
from benchmarks.queries.predicted_cost import predicted
from benchmarks.queries.queries import queries
from benchmarks.queries.rows import rows
from benchmarks.report import BenchmarkRow, table
from benchmarks.simulation.scaling import shape
from benchmarks.simulation.testbed_point import executions
from benchmarks.simulation.turns import turns
from rich.console import Console
from rich.table import Table

Measure = Callable[[], Iterable[BenchmarkRow]]
SHORT_LIVE = LiveSizes(operators=30, frames=0.01, repetitions=1, tuples=10, costly_frames=30, saturated_s=0.2)


class Section(NamedTuple):
    """A part of the table: how to measure it, and how to check it in seconds."""

    full: Measure
    short: Measure


SECTIONS = {
    "turns": Section(turns, partial(turns, count=2_000, repetitions=1)),
    "shape": Section(shape, partial(shape, legs=1, side=10)),
    "executions": Section(executions, partial(executions, tuples=20)),
    "rows": Section(rows, partial(rows, repetitions=1)),
    "queries": Section(queries, partial(queries, rows=2_000, repetitions=1)),
    "held": Section(held, partial(held, rows=100_000)),
    "predicted": Section(predicted, predicted),
    "fidelity": Section(
        partial(fidelity, policies=("fifo", "rr", "chain", "fas-mcq")),
        partial(fidelity, plans=("ten-queries", "auction"), policies=("chain",), until=1.0, hosts=4),
    ),
    "swaps": Section(swaps, partial(swaps, count=4, seconds=1.0)),
    "live": Section(live, partial(live, SHORT_LIVE)),
    "load": Section(load, partial(load, rows=100_000, repetitions=1, seconds=2.0, rate=5_000)),
    "metrics": Section(metrics, partial(metrics, repetitions=1, frames=50)),
    "checkpoints": Section(checkpoints, partial(checkpoints, state_bytes=4_000_000, repetitions=1, frames=5)),
}


def compare_policies(short: bool = False) -> Iterable[Table]:
    """Compare our policies with the papers' in virtual time; yield each table as soon as its runs are done."""
    yield from against(plans=1) if short else against()
    yield freshness(seeds=1, tuples=20) if short else freshness()


def main(names: Sequence[str] = (), short: bool = False) -> None:
    """Run all sections and the policies, or only the sections named."""
    start = time.monotonic()
    out = Console(width=max(Console().width, 150))  # a pipe says that it is 80 wide
    chosen = [section for name, section in SECTIONS.items() if not names or name in names]
    with Console(stderr=True).status("ours and the peers run alternately: some minutes"):
        measured = table((section.short if short else section.full)() for section in chosen)
    measured.caption = f"the work of every run was checked; {time.monotonic() - start:.0f} s in all"
    out.print(measured)
    if names:
        return
    with Console(stderr=True).status("policies are compared in virtual time: a dozen minutes"):
        for policies in compare_policies(short):
            out.print(policies)
    out.print(f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description="measure speed beside peers")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"one of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--short", action="store_true", help="do little work, and check all of it")
    options = parser.parse_args()
    if unknown := [name for name in options.sections if name not in SECTIONS]:
        parser.error(f"no section {unknown}; there are {list(SECTIONS)}")
    main(options.sections, options.short)
