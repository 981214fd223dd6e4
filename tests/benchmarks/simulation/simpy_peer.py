"""The same model in SimPy (one CPU, the oldest tuple first), in the three ways one would write it there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import simpy


class Model(NamedTuple):
    """Arrivals and fates, drawn beforehand: SimPy need not."""

    instants: Sequence[float]
    passes: Sequence[Sequence[Sequence[bool]]]  # by tuple, by query, by operator
    cost: float  # of every operator


class SimpyResult(NamedTuple):
    """What a run came to."""

    elapsed: float
    latencies: list[float]


def fused(model: Model) -> SimpyResult:
    """A tuple asks for the CPU once and keeps it through all queries: FIFO and nothing else can be written so."""
    env, latencies = simpy.Environment(), []
    cpu = simpy.Resource(env)

    def source() -> Iterator[Any]:
        for instant, queries in zip(model.instants, model.passes, strict=True):
            yield env.timeout(instant - env.now)
            env.process(path(queries))

    def path(queries: Sequence[Sequence[bool]]) -> Iterator[Any]:
        arrived = env.now
        with cpu.request() as granted:
            yield granted
            for query in queries:
                for passed in query:
                    yield env.timeout(model.cost)
                    if not passed:
                        break
                else:
                    latencies.append(env.now - arrived)

    env.process(source())
    env.run()
    return SimpyResult(env.now, latencies)


def scheduler(model: Model) -> SimpyResult:
    """A process that is the CPU takes the first of a heap: a decision a turn, the order of the heap is the policy."""
    env, latencies = simpy.Environment(), []
    waiting: list[tuple[int, int, int, float, Sequence[bool]]] = []
    work = env.event()

    def source() -> Iterator[Any]:
        for seq, (instant, queries) in enumerate(zip(model.instants, model.passes, strict=True)):
            yield env.timeout(instant - env.now)
            for place, query in enumerate(queries):
                heappush(waiting, (seq, place, 0, env.now, query))
            if not work.triggered:
                work.succeed()

    def cpu() -> Iterator[Any]:
        nonlocal work
        while True:
            if not waiting:
                work = env.event()
                yield work
            seq, place, depth, arrived, query = heappop(waiting)
            yield env.timeout(model.cost)
            if not query[depth]:
                continue
            if depth + 1 < len(query):
                heappush(waiting, (seq, place, depth + 1, arrived, query))
            else:
                latencies.append(env.now - arrived)

    env.process(source())
    env.process(cpu())
    env.run()
    return SimpyResult(env.now, latencies)


def priority_resource(model: Model) -> SimpyResult:
    """A tuple asks for the CPU at each operator: a decision a turn, the priority of the request is the policy."""
    env, latencies = simpy.Environment(), []
    cpu = simpy.PriorityResource(env)

    def source() -> Iterator[Any]:
        for seq, (instant, queries) in enumerate(zip(model.instants, model.passes, strict=True)):
            yield env.timeout(instant - env.now)
            for place, query in enumerate(queries):
                env.process(path((seq, place), query))

    def path(age: Any, query: Sequence[bool]) -> Iterator[Any]:
        arrived = env.now
        for passed in query:
            with cpu.request(priority=age) as granted:
                yield granted
                yield env.timeout(model.cost)
            if not passed:
                return
        latencies.append(env.now - arrived)

    env.process(source())
    env.run()
    return SimpyResult(env.now, latencies)


MODELS = {"FIFO wired in": fused, "own scheduler": scheduler, "PriorityResource": priority_resource}
