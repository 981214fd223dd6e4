"""Simulates items on a scheduling graph in time, with a processor for every operation that may start."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence

from dsms.dataflow import DataflowRun, Matrix, Node, Operation, Plan, SchedulingGraph, number_operations


def finish_times(
    plan: Plan,
    run: DataflowRun,
    streams: Sequence[str],
    arrivals: Sequence[float],
    times: Mapping[str, float],
    matrix: Matrix,
) -> list[dict[Operation, float]]:
    """The end of each operation of each item, if items arrive at these times and only edges delay operations.

    The number of rows that an operation handles is taken from `run`, a run of the same items; each takes its time.
    """
    operations = [operation for _, operation in number_operations(plan)]
    lengths = {node: times[operations[node.row].kind] * n for node, n in zip(run.ran, run.handled, strict=True)}
    last = {node.item: node for node in run.ran}
    graph = SchedulingGraph.of(plan, matrix)
    done: list[dict[Operation, float]] = [{} for _ in streams]
    running: list[tuple[float, Node]] = []
    started: set[Node] = set()
    while graph.arrived < len(streams) or running:
        arrival = arrivals[graph.arrived] if graph.arrived < len(streams) else math.inf
        if running and running[0][0] <= arrival:
            now, node = heapq.heappop(running)
            done[node.item][operations[node.row]] = now
            graph = graph.complete(node, empty=last[node.item] == node)
        else:
            now = arrival
            graph = graph.arrive(streams[graph.arrived])
        for node in graph.startable:
            if node not in started:
                started.add(node)
                heapq.heappush(running, (now + lengths[node], node))
    return done
