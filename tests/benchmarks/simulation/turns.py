"""Single-tuple turns a second in virtual time, all measures on: against a bare decision, more stations, and SimPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from heapq import heapreplace

import numpy as np
from benchmarks.report import BenchmarkRow
from benchmarks.simulation.simpy_peer import MODELS, Model, SimpyResult
from benchmarks.simulation.workload import COST, BenchmarkWorkload
from benchmarks.timing import Contender, interleave, measure_time

from dsms.simulation import Run, simulate

POLICIES = ("fifo", "greedy", "mtiq", "rr")
TURNS, REPETITIONS = 50_000, 7
GOAL, AIM = 200_000, 500_000  # turns a second


def turns(count: int = TURNS, repetitions: int = REPETITIONS) -> Iterator[BenchmarkRow]:
    """Time all contenders by turns, so that any two figures may be compared; a run takes about `count` turns."""
    ten = BenchmarkWorkload(streams=1, queries=2, operators=5, turns=count)
    thousand = BenchmarkWorkload(streams=1, queries=200, operators=5, turns=count)
    contenders: dict[str, Contender] = {"heap": _heap}
    for policy in POLICIES:
        contenders[policy] = partial(_simulate, ten, policy)
        contenders[f"1000 {policy}"] = partial(_simulate, thousand, policy)
    model = Model(ten.instants[0].tolist(), np.stack(ten.passes).transpose(2, 0, 1).tolist(), COST)
    same = simulate(ten.plan, "fifo")
    contenders |= {name: partial(_in_simpy, way, model, same) for name, way in MODELS.items()}
    times = interleave(contenders, repetitions)

    heap, fifo = times["heap"], times["fifo"]
    for policy in POLICIES:
        ours = times[policy]
        ratio, goal, met = heap.median / ours.median, f"≥ {GOAL:,}/s, aim {AIM:,}", 1 / ours.median >= GOAL
        yield BenchmarkRow(f"turns, 10 stations, {policy}", ours.rate, f"bare heap loop {heap.rate}", ratio, goal, met)
    for policy in POLICIES:
        ours, fewer = times[f"1000 {policy}"], times[policy]
        ratio = fewer.median / ours.median
        yield BenchmarkRow(
            f"turns, 1,000 stations, {policy}", ours.rate, f"10 stations {fewer.rate}", ratio, "≥ 0.5", ratio >= 0.5
        )
    for name in MODELS:
        peer = times[name]
        yield BenchmarkRow(
            "turns, 10 stations, fifo", fifo.rate, f"SimPy, {name} {peer.rate}", peer.median / fifo.median
        )


def _simulate(workload: BenchmarkWorkload, policy: str) -> float:
    seconds, run = measure_time(lambda: simulate(workload.plan, policy))
    assert (run.admitted, run.turns, run.outputs) == workload.work
    return seconds / run.turns


def _in_simpy(way: Callable[[Model], SimpyResult], model: Model, same: Run) -> float:
    seconds, answer = measure_time(lambda: way(model))
    assert len(answer.latencies) == same.outputs
    assert same.latency.mean is not None
    assert np.isclose(np.mean(answer.latencies), same.latency.mean, rtol=1e-9)
    assert np.isclose(answer.elapsed, same.elapsed, rtol=1e-9)
    return seconds / same.turns


def _heap(turns: int = 500_000) -> float:
    """Take the first of ten segments and rank it again, and do nothing else."""
    served = [0] * 10
    heap = [(0.0, seq, seq) for seq in range(10)]

    def loop() -> None:
        for seq in range(10, 10 + turns):
            segment = heap[0][2]
            served[segment] += 1
            heapreplace(heap, (0.0, seq, segment))

    seconds, _ = measure_time(loop)
    assert served == [turns // 10] * 10
    return seconds / turns
