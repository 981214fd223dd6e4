"""Makes physical plans: turns joins into multiway joins of only the columns and retractions that readers need."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from dsms.algebra import (
    Aggregate,
    Difference,
    Emit,
    Join,
    Node,
    Project,
    Select,
    ToStream,
    inputs_of,
    with_inputs,
)
from dsms.expressions.tree import columns_of
from dsms.query.planner.join_flows import lower_join

EMIT_BY_KIND: dict[str, Emit] = {"istream": "insertions", "dstream": "deletions", "rstream": "both"}


class PhysicalPlanner:
    """Plans all queries of a plan together: a join that two of them share must serve both."""

    def __init__(self, plans: Iterable[Node]) -> None:
        self._columns: dict[Node, set[str]] = {}
        self._emits: dict[Node, set[Emit]] = {}
        for plan in plans:
            self._collect(plan, set(plan.schema), "both")

    def of(self, node: Node) -> Node:
        """The physical plan of a part."""
        if isinstance(node, Join | Difference):
            return lower_join(self._over(node), self._columns[node], self._emit(node))
        if isinstance(node, ToStream):
            return self._changes(node)
        return with_inputs(node, [self.of(part) for part in inputs_of(node)])

    def _collect(self, node: Node, names: Set[str], emit: Emit) -> None:
        """Collect which columns of each join are needed, and whether retractions are."""
        match node:
            case Select(of, condition):
                self._collect(of, names | columns_of(condition), emit)
            case Project(of, items):
                self._collect(of, frozenset().union(*(columns_of(item) for _, item in items)), emit)
            case ToStream(of, kind):
                self._collect(of, set(of.schema), EMIT_BY_KIND[kind])
            case Join() | Difference():
                self._columns.setdefault(node, set()).update(names)
                self._emits.setdefault(node, set()).add(emit)
                for part in _join_leaves(node):
                    self._collect(part, set(part.schema), "both")
            case _:
                for part in inputs_of(node):
                    self._collect(part, set(part.schema), "both")

    def _emit(self, node: Node) -> Emit:
        emits = self._emits[node]
        return next(iter(emits)) if len(emits) == 1 else "both"

    def _over(self, node: Node) -> Node:
        """The same join or difference over the physical plans of its inputs."""
        if isinstance(node, Difference):
            return replace(node, left=self._over(node.left), right=self.of(node.right))
        if isinstance(node, Join):
            return with_inputs(node, [self.of(part) for part in inputs_of(node)])
        return self.of(node)

    def _changes(self, node: ToStream) -> Node:
        """A stream of changes; the part itself if it only inserts. Deletions still have to lose their sign."""
        below = node.of
        while isinstance(below, Select | Project):
            below = below.of
        if isinstance(below, Join | Difference) and self._emit(below) == EMIT_BY_KIND[node.kind] == "insertions":
            return self.of(node.of)
        if node.kind == "istream" and node.of.is_append_only:
            return self.of(node.of)
        of = self.of(node.of)
        return replace(node, of=_emit_unchanged(of) if node.kind == "rstream" else of)


def _emit_unchanged(node: Node) -> Node:
    """Make an aggregate put out results at instants that change nothing, too."""
    if isinstance(node, Select | Project):
        return replace(node, of=_emit_unchanged(node.of))
    return replace(node, emit_unchanged=True) if isinstance(node, Aggregate) else node


def _join_leaves(node: Node) -> Iterable[Node]:
    """The inputs of nested differences and of the join inside them, which become one multiway join."""
    if isinstance(node, Difference):
        yield from _join_leaves(node.left)
        yield node.right
    elif isinstance(node, Join):
        yield from inputs_of(node)
    else:
        yield node
