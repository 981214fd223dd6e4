"""EXCEPT takes a null to equal a null, but joins meet by values alone: a null becomes a value with a mark beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsms.algebra import Difference, Node, Project, inputs_of, with_inputs
from dsms.expressions.tree import Call, Column, Expression, Literal, Value
from dsms.schema import Schema

INSTEAD: dict[str, Value] = {"int64": 0, "float64": 0.0, "bool": False, "timestamp": 0, "string": ""}


def marked(node: Node) -> Node:
    """The same query with every EXCEPT as a difference in which no compared column is null."""
    node = with_inputs(node, [marked(part) for part in inputs_of(node)])
    if not (isinstance(node, Difference) and node.nulls):
        return node
    left = _beside(node.left, (mine for mine, _ in node.on))
    right = _beside(node.right, (its for _, its in node.on))
    pairs = zip(_added(mine for mine, _ in node.on), _added(its for _, its in node.on), strict=True)
    plain = tuple((name, Column(name)) for name in node.schema)
    return Project(Difference(left, right, tuple(pairs)), plain, node.schema)


def _beside(node: Node, names: Iterable[str]) -> Node:
    """A part with columns beside its own that are never null and together say as much as those of these names."""
    items: dict[str, tuple[Expression, str]] = {name: (Column(name), kind) for name, kind in node.schema.fields}
    for name in names:
        kind, (value, mark) = node.schema[name], _added([name])
        items[value] = Call("coalesce", (Column(name), Literal(INSTEAD[kind]))), kind
        items[mark] = Call("is null", (Column(name),)), "bool"
    schema = Schema(tuple((name, kind) for name, (_, kind) in items.items()))
    return Project(node, tuple((name, item) for name, (item, _) in items.items()), schema)


def _added(names: Iterable[str]) -> Iterator[str]:
    """What the columns beside some are called: as no column can be in a query."""
    for name in names:
        yield f"{name} or empty"
        yield f"{name} is null"
