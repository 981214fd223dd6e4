"""How the parts of queries are to be done: joins as flows of the columns and the signs that anybody wants of them."""

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
from dsms.planner.flows import lowered

SIGNS: dict[str, Emit] = {"istream": "births", "dstream": "deaths", "rstream": "both"}


class Physical:
    """All queries of a plan together, as a join that two of them have in common has to serve both."""

    def __init__(self, plans: Iterable[Node]) -> None:
        self._wanted: dict[Node, set[str]] = {}
        self._emits: dict[Node, set[Emit]] = {}
        for plan in plans:
            self._want(plan, set(plan.schema), "both")

    def of(self, node: Node) -> Node:
        """The part as it is to be done."""
        if isinstance(node, Join | Difference):
            return lowered(self._over(node), self._wanted[node], self._emit(node))
        if isinstance(node, ToStream):
            return self._changes(node)
        return with_inputs(node, [self.of(part) for part in inputs_of(node)])

    def _want(self, node: Node, names: Set[str], emit: Emit) -> None:
        """Note who needs which columns of a join, and whether what it takes back too."""
        match node:
            case Select(of, condition):
                self._want(of, names | columns_of(condition), emit)
            case Project(of, items):
                self._want(of, frozenset().union(*(columns_of(item) for _, item in items)), emit)
            case ToStream(of, kind):
                self._want(of, set(of.schema), SIGNS[kind])
            case Join() | Difference():
                self._wanted.setdefault(node, set()).update(names)
                self._emits.setdefault(node, set()).add(emit)
                for part in _leaves(node):
                    self._want(part, set(part.schema), "both")
            case _:
                for part in inputs_of(node):
                    self._want(part, set(part.schema), "both")

    def _emit(self, node: Node) -> Emit:
        wanted = self._emits[node]
        return next(iter(wanted)) if len(wanted) == 1 else "both"

    def _over(self, node: Node) -> Node:
        """The same join or difference over inputs as they are to be done."""
        if isinstance(node, Difference):
            return replace(node, left=self._over(node.left), right=self.of(node.right))
        if isinstance(node, Join):
            return with_inputs(node, [self.of(part) for part in inputs_of(node)])
        return self.of(node)

    def _changes(self, node: ToStream) -> Node:
        """A stream of changes; no more than the part itself where that is one: what goes has still to lose its sign."""
        below = node.of
        while isinstance(below, Select | Project):
            below = below.of
        if isinstance(below, Join | Difference) and self._emit(below) == SIGNS[node.kind] == "births":
            return self.of(node.of)
        if node.kind == "istream" and node.of.appends:
            return self.of(node.of)
        of = self.of(node.of)
        return replace(node, of=_every(of) if node.kind == "rstream" else of)


def _every(node: Node) -> Node:
    """The part, if it is an aggregate, telling of instants that change nothing."""
    if isinstance(node, Select | Project):
        return replace(node, of=_every(node.of))
    return replace(node, every=True) if isinstance(node, Aggregate) else node


def _leaves(node: Node) -> Iterable[Node]:
    """The inputs of nested differences and the join inside them, which are one flow."""
    if isinstance(node, Difference):
        yield from _leaves(node.left)
        yield node.right
    elif isinstance(node, Join):
        yield from inputs_of(node)
    else:
        yield node
