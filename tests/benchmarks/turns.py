"""Single-tuple turns a second in virtual time, all measures on: against a bare decision, more stations, and SimPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from heapq import heapreplace

import numpy as np
from benchmarks.report import Row
from benchmarks.simpy_peer import WAYS, Answer, Model
from benchmarks.timing import Contender, interleaved, timed
from benchmarks.workload import COST, Workload

from dsms.simulate import Run, simulate

POLICIES = ("fifo", "greedy", "mtiq", "rr")
TEN = Workload(streams=1, queries=2, operators=5, turns=50_000)
THOUSAND = Workload(streams=1, queries=200, operators=5, turns=50_000)
GOAL, AIM = 200_000, 500_000


def turns() -> Iterator[Row]:
    """All in one contest, so that any two figures may be compared."""
    contenders: dict[str, Contender] = {"heap": _heap}
    for policy in POLICIES:
        contenders[policy] = partial(_simulated, TEN, policy)
        contenders[f"1000 {policy}"] = partial(_simulated, THOUSAND, policy)
    model = Model(TEN.instants[0].tolist(), np.stack(TEN.passes).transpose(2, 0, 1).tolist(), COST)
    same = simulate(TEN.plan, "fifo")
    contenders |= {name: partial(_in_simpy, way, model, same) for name, way in WAYS.items()}
    times = interleaved(contenders, repetitions=7)

    heap, fifo = times["heap"], times["fifo"]
    for policy in POLICIES:
        ours = times[policy]
        ratio, goal, met = heap.median / ours.median, f"≥ {GOAL:,}/s, aim {AIM:,}", 1 / ours.median >= GOAL
        yield Row(f"turns, 10 stations, {policy}", ours.rate, f"bare heap loop {heap.rate}", ratio, goal, met)
    for policy in POLICIES:
        ours, ten = times[f"1000 {policy}"], times[policy]
        ratio = ten.median / ours.median
        yield Row(
            f"turns, 1,000 stations, {policy}", ours.rate, f"10 stations {ten.rate}", ratio, "≥ 0.5", ratio >= 0.5
        )
    for name in WAYS:
        peer = times[name]
        yield Row("turns, 10 stations, fifo", fifo.rate, f"SimPy, {name} {peer.rate}", peer.median / fifo.median)


def _simulated(workload: Workload, policy: str) -> float:
    seconds, run = timed(lambda: simulate(workload.plan, policy))
    assert (run.admitted, run.turns, run.outputs) == workload.work
    return seconds / run.turns


def _in_simpy(way: Callable[[Model], Answer], model: Model, same: Run) -> float:
    seconds, answer = timed(lambda: way(model))
    assert len(answer.latencies) == same.outputs
    assert same.latency.mean is not None
    assert np.isclose(np.mean(answer.latencies), same.latency.mean, rtol=1e-9)
    assert np.isclose(answer.elapsed, same.elapsed, rtol=1e-9)
    return seconds / same.turns


def _heap(turns: int = 500_000) -> float:
    """Take the first of ten segments and rank it anew, nothing else."""
    served = [0] * 10
    heap = [(0.0, seq, seq) for seq in range(10)]

    def loop() -> None:
        for seq in range(10, 10 + turns):
            segment = heap[0][2]
            served[segment] += 1
            heapreplace(heap, (0.0, seq, segment))

    seconds, _ = timed(loop)
    assert served == [turns // 10] * 10
    return seconds / turns
