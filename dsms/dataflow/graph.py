"""The scheduling graph: which operations of pending items may start now, and which wait for which.

Getta, Vossough: an item's operations are a chain of solid edges; a dashed edge leads from every unfinished operation of
an earlier item to each that it conflicts with. Edges lead to later items only, so something may always start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from dsms.dataflow.conflicts import Matrix, conflict_matrix, numbered
from dsms.dataflow.operation import Dataflow
from dsms.errors import PlanError, existing


class Node(NamedTuple):
    """An operation of an item: which item in the order of arrival, which row of the conflict matrix."""

    item: int
    row: int


Edge = tuple[Node, Node]


@dataclass(frozen=True)
class SchedulingGraph:
    """The unfinished operations of all items that have arrived; every change is a new graph."""

    rows: tuple[str, ...]  # the stream of each operation of the plan
    conflicts: Matrix
    arrived: int = 0
    chains: tuple[tuple[Node, ...], ...] = ()  # of each pending item, in the order of arrival, what is left
    dashed: frozenset[Edge] = frozenset()

    @classmethod
    def of(cls, plan: Sequence[Dataflow], conflicts: Matrix | None = None) -> SchedulingGraph:
        """The graph of a plan before the first item; `conflicts` are those without timestamps unless given."""
        return cls(tuple(stream for stream, _ in numbered(plan)), conflicts or conflict_matrix(plan))

    def arrive(self, stream: str) -> SchedulingGraph:
        """The graph with the next item, of this stream."""
        chain = tuple(Node(self.arrived, row) for row, of in enumerate(self.rows) if of == stream)
        if not chain:
            raise PlanError(f"no stream {stream!r} in this plan{existing(stream, set(self.rows))}")
        dashed = {
            (earlier, node)
            for pending in self.chains
            for earlier in pending
            for node in chain
            if self.conflicts[earlier.row][node.row]
        }
        return replace(self, arrived=self.arrived + 1, chains=(*self.chains, chain), dashed=self.dashed.union(dashed))

    @property
    def solid(self) -> frozenset[Edge]:
        """The edges between successive operations of one item."""
        return frozenset(edge for chain in self.chains for edge in pairwise(chain))

    @property
    def startable(self) -> list[Node]:
        """The operations that no edge enters, solid or dashed, by arrival of their items."""
        held = {node for _, node in self.dashed}
        return [chain[0] for chain in self.chains if chain[0] not in held]

    @property
    def waits(self) -> int:
        """The number of dashed edges, the measure of a plan: with 0 no item waits for another."""
        return len(self.dashed)

    def complete(self, node: Node, *, empty: bool = False) -> SchedulingGraph:
        """The graph without an operation that is done; `empty` if it put out nothing, which ends its item."""
        if node not in self.startable:
            raise PlanError(f"{node} cannot be done before what it waits for; there may start {self.startable}")
        left = {chain[0]: (() if empty else chain[1:]) if chain[0] == node else chain for chain in self.chains}
        chains = tuple(chain for chain in left.values() if chain)
        kept = {pending for chain in chains for pending in chain}
        return replace(self, chains=chains, dashed=frozenset(edge for edge in self.dashed if edge[0] in kept))


def edges(plan: Sequence[Dataflow], pending: Sequence[str], timestamps: bool = False, checked: bool = True) -> int:
    """The number of dashed edges when items of these streams are pending, none of them begun."""
    graph = SchedulingGraph.of(plan, conflict_matrix(plan, timestamps=timestamps, checked=checked))
    for stream in pending:
        graph = graph.arrive(stream)
    return graph.waits
