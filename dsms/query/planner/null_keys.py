"""Rewrites EXCEPT, in which nulls are equal, for joins by value: a null becomes a value and a flag beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsms.algebra import Difference, Node, Project, inputs_of, with_inputs
from dsms.data.schema import Schema
from dsms.expressions.tree import Call, Column, Expression, Literal, Value

NULL_SUBSTITUTES: dict[str, Value] = {"int64": 0, "float64": 0.0, "bool": False, "timestamp": 0, "string": ""}


def rewrite_null_comparisons(node: Node) -> Node:
    """Rewrite every EXCEPT to a difference in which no compared column is null."""
    node = with_inputs(node, [rewrite_null_comparisons(part) for part in inputs_of(node)])
    if not (isinstance(node, Difference) and node.nulls_equal):
        return node
    left = _add_null_columns(node.left, (mine for mine, _ in node.on))
    right = _add_null_columns(node.right, (its for _, its in node.on))
    pairs = zip(
        _null_column_names(mine for mine, _ in node.on), _null_column_names(its for _, its in node.on), strict=True
    )
    plain = tuple((name, Column(name)) for name in node.schema)
    return Project(Difference(left, right, tuple(pairs)), plain, node.schema)


def _add_null_columns(node: Node, names: Iterable[str]) -> Node:
    """Add two columns without nulls for each of these columns: its value or a substitute, and a flag for null."""
    items: dict[str, tuple[Expression, str]] = {name: (Column(name), kind) for name, kind in node.schema.fields}
    for name in names:
        kind, (value, mark) = node.schema[name], _null_column_names([name])
        items[value] = Call("coalesce", (Column(name), Literal(NULL_SUBSTITUTES[kind]))), kind
        items[mark] = Call("is null", (Column(name),)), "bool"
    schema = Schema(tuple((name, kind) for name, (_, kind) in items.items()))
    return Project(node, tuple((name, item) for name, (item, _) in items.items()), schema)


def _null_column_names(names: Iterable[str]) -> Iterator[str]:
    """The names of the added columns, which no column of a query can have."""
    for name in names:
        yield f"{name} or empty"
        yield f"{name} is null"
