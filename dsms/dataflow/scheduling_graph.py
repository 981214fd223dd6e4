"""The scheduling graph: which operations of pending items may start now, and which operations they wait for.

Getta, Vossough: an item's operations are a chain of solid edges. A dashed edge leads from every unfinished operation of
an earlier item to each operation that it conflicts with. Edges lead only to later items, so there is no deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from dsms.dataflow.conflicts import Matrix, conflict_matrix, number_operations
from dsms.dataflow.operation import Dataflow
from dsms.errors import PlanError, existing


class Node(NamedTuple):
    """An operation of an item: the number of the item in arrival order, and the row of the conflict matrix."""

    item: int
    row: int


Edge = tuple[Node, Node]


@dataclass(frozen=True)
class SchedulingGraph:
    """The unfinished operations of all items that have arrived; immutable, so every change is a new graph."""

    rows: tuple[str, ...]  # the stream of each operation of the plan
    conflicts: Matrix
    arrived: int = 0
    chains: tuple[tuple[Node, ...], ...] = ()  # the remaining operations of each pending item, in arrival order
    dashed: frozenset[Edge] = frozenset()

    @classmethod
    def of(cls, plan: Sequence[Dataflow], conflicts: Matrix | None = None) -> SchedulingGraph:
        """Create the graph of a plan before the first item; by default with the conflicts without timestamps."""
        return cls(tuple(stream for stream, _ in number_operations(plan)), conflicts or conflict_matrix(plan))

    def arrive(self, stream: str) -> SchedulingGraph:
        """Return the graph after the next item, of this stream, has arrived."""
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
        """The operations without an incoming edge, in arrival order of their items."""
        held = {node for _, node in self.dashed}
        return [chain[0] for chain in self.chains if chain[0] not in held]

    @property
    def waits(self) -> int:
        """The number of dashed edges, the measure of a plan: with 0 no item waits for another."""
        return len(self.dashed)

    def complete(self, node: Node, *, empty: bool = False) -> SchedulingGraph:
        """Return the graph without a finished operation; `empty`: it emitted nothing, so its item is done."""
        if node not in self.startable:
            raise PlanError(f"{node} cannot run before the operations it waits for; {self.startable} may start")
        left = {chain[0]: (() if empty else chain[1:]) if chain[0] == node else chain for chain in self.chains}
        chains = tuple(chain for chain in left.values() if chain)
        kept = {pending for chain in chains for pending in chain}
        return replace(self, chains=chains, dashed=frozenset(edge for edge in self.dashed if edge[0] in kept))


def count_dashed_edges(
    plan: Sequence[Dataflow], pending: Sequence[str], timestamps: bool = False, checked: bool = True
) -> int:
    """Return the number of dashed edges when items of these streams are pending and none has started."""
    graph = SchedulingGraph.of(plan, conflict_matrix(plan, timestamps=timestamps, checked=checked))
    for stream in pending:
        graph = graph.arrive(stream)
    return graph.waits
