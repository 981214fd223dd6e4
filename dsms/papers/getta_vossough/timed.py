"""Items through a plan in time: as many operations at once as the scheduling graph lets start."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence

from dsms.dataflow import Matrix, Node, Operation, Plan, Run, SchedulingGraph, numbered


def finished(
    plan: Plan, run: Run, streams: Sequence[str], arrivals: Sequence[float], times: Mapping[str, float], matrix: Matrix
) -> list[dict[Operation, float]]:
    """When each operation of each item was done, if items arrive at these times and nothing but edges holds it.

    How much an operation has to do is known from a run of the same items; it takes its time for each change.
    """
    operations = [operation for _, operation in numbered(plan)]
    lengths = {node: times[operations[node.row].kind] * n for node, n in zip(run.ran, run.handled, strict=True)}
    last = {node.item: node for node in run.ran}
    graph = SchedulingGraph.of(plan, matrix)
    done: list[dict[Operation, float]] = [{} for _ in streams]
    running: list[tuple[float, Node]] = []
    begun: set[Node] = set()
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
            if node not in begun:
                begun.add(node)
                heapq.heappush(running, (now + lengths[node], node))
    return done
