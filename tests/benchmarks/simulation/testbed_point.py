"""Times one point of the freshness test-bed at the paper's size, with all measures on.

Sharaf et al. run 250 queries over 10 streams of 10,000 tuples: an execution is one tuple through one query. The peer
does only what every scheduler by priority must do: it pushes each execution into a heap once and pops it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import heappop, heappush

import numpy as np
from benchmarks.policies.freshness import make_plan
from benchmarks.report import BenchmarkRow
from benchmarks.timing import interleave, measure_time

from dsms.papers.fas_mcq.testbed import QUERIES, STREAMS
from dsms.plan.graph import Plan
from dsms.simulation import simulate

POLICIES = ("fas-mcq", "rb-mcq")
TUPLES = 10_000  # of each stream
GOAL_S, AIM_S = 20, 8


def executions(tuples: int = TUPLES) -> Iterator[BenchmarkRow]:
    """Run each policy once: a run is long enough that its time varies little."""
    plan = make_plan(0, tuples)
    executions_due = tuples * sum(len(stream.consumers) for stream in plan.streams)
    contenders = {
        "heap": partial(_run_heap, executions_due),
        **{policy: partial(_simulate, plan, policy, executions_due) for policy in POLICIES},
    }
    times = interleave(contenders, repetitions=1)
    peer = times["heap"].median * executions_due
    for policy in POLICIES:
        ours = times[policy].median * executions_due
        what = f"{executions_due:,} executions of {QUERIES} queries over {STREAMS} streams, {policy}"
        shown = f"{ours:.1f} s of CPU", f"bare heap loop {peer:.1f} s"
        yield BenchmarkRow(what, *shown, peer / ours, f"≤ {GOAL_S} s, aim {AIM_S}", ours <= GOAL_S)


def _simulate(plan: Plan, policy: str, due: int) -> float:
    seconds, run = measure_time(lambda: simulate(plan, policy))
    assert run.turns == due  # a turn takes one tuple through all of a query
    return seconds / due


def _run_heap(due: int) -> float:
    """Push and pop `due` entries, in groups as large as an arrival's copies; a few of them wait."""
    priorities, group = np.random.default_rng(0).random(due).tolist(), QUERIES // STREAMS
    heap: list[tuple[float, int]] = []

    def loop() -> int:
        popped = 0
        for first in range(0, due, group):
            for number in range(first, min(first + group, due)):
                heappush(heap, (priorities[number], number))
            while len(heap) > QUERIES:
                heappop(heap)
                popped += 1
        return popped + len([heappop(heap) for _ in range(len(heap))])

    seconds, popped = measure_time(loop)
    assert popped == due
    return seconds / due
