"""A point of the freshness test-bed at the paper's size: the time all of its query executions take, measures and all.

Sharaf et al. run 250 queries over 10 streams of 10,000 tuples: an execution is one tuple through one query. The peer
does nothing but what any scheduler by priorities must: each execution is pushed into a heap once, and popped once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import heappop, heappush

import numpy as np
from benchmarks.freshness import QUERIES, STREAMS, bed
from benchmarks.report import Row
from benchmarks.timing import interleaved, timed

from dsms.plan import Plan
from dsms.simulate import simulate

POLICIES = ("fas-mcq", "rb-mcq")
TUPLES, GOAL, AIM = 10_000, 20, 8  # seconds


def executions(tuples: int = TUPLES) -> Iterator[Row]:
    """Each policy once: a run is long enough that its time does not vary much."""
    plan = bed(0, tuples)
    due = tuples * sum(len(stream.consumers) for stream in plan.streams)
    contenders = {
        "heap": partial(_heap, due),
        **{policy: partial(_simulated, plan, policy, due) for policy in POLICIES},
    }
    times = interleaved(contenders, repetitions=1)
    peer = times["heap"].median * due
    for policy in POLICIES:
        ours = times[policy].median * due
        what = f"{due:,} executions of {QUERIES} queries over {STREAMS} streams, {policy}"
        shown = f"{ours:.1f} s of CPU", f"bare heap loop {peer:.1f} s"
        yield Row(what, *shown, peer / ours, f"≤ {GOAL} s, aim {AIM}", ours <= GOAL)


def _simulated(plan: Plan, policy: str, due: int) -> float:
    seconds, run = timed(lambda: simulate(plan, policy))
    assert run.turns == due  # a turn takes one tuple through all of a query
    return seconds / due


def _heap(due: int) -> float:
    """As many pushes and pops, in groups as large as an arrival's copies, a few of which wait."""
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

    seconds, popped = timed(loop)
    assert popped == due
    return seconds / due
