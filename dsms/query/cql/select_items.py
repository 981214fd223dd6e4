"""The items of a SELECT: expands *, names the output columns, and makes the projection."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from sqlglot import exp

from dsms.algebra import Node, Project
from dsms.data.schema import Schema
from dsms.errors import PlanError
from dsms.expressions.tree import Column, Expression
from dsms.query.cql.errors import CqlError, start_of
from dsms.query.cql.expressions import Translator, is_aggregate
from dsms.query.cql.scope import Scope


def name_items(nodes: Iterable[exp.Expr], scope: Scope) -> list[tuple[str, exp.Expr]]:
    """Give every output column a unique name."""
    taken: set[str] = set()
    items = []
    for place, node in enumerate(nodes, start=1):
        for base, item in _expand_star(node, scope, place):
            name = make_unique_name(base, taken)
            taken.add(name)
            items.append((name, item))
    return items


def make_unique_name(base: str, taken: Container[str]) -> str:
    """The base name if it is free, else the base name with the first free number."""
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _expand_star(node: exp.Expr, scope: Scope, place: int) -> Iterator[tuple[str, exp.Expr]]:
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        yield _name_item(node, place)
        return
    if any(star.args.values()):
        raise CqlError("* with EXCEPT, REPLACE or RENAME is not part of CQL; name the columns", start_of(node))
    try:
        columns = scope.starred(node.table if isinstance(node, exp.Column) else "")
    except PlanError as error:
        raise CqlError(error.message, start_of(node)) from None
    for name, alias, column in columns:
        yield name, exp.column(exp.to_identifier(column), table=exp.to_identifier(alias) if alias else None)


def _name_item(node: exp.Expr, place: int) -> tuple[str, exp.Expr]:
    if not isinstance(node, exp.Alias):
        return _default_name(node, place), node
    name = node.alias
    if not isinstance(node.args["alias"], exp.Identifier) or not name or "?" in name or "." in name:
        raise CqlError(f"{name!r} cannot be the name of a column: no ? and no . in it", start_of(node.args["alias"]))
    return name, node.this


def _default_name(node: exp.Expr, place: int) -> str:
    """The name of an item without AS."""
    if isinstance(node, exp.Column):
        return node.name
    return aggregate_name(node) if is_aggregate(node) else f"expr{place}"


def aggregate_name(node: exp.Expr) -> str:
    """A readable name of an aggregate: count, sum_size."""
    argument = node.expressions[0] if node.expressions else None
    words = [node.name.lower()]
    if isinstance(argument, exp.Distinct):
        words.append("distinct")
        argument = argument.expressions[0]
    return "_".join([*words, argument.name] if isinstance(argument, exp.Column) else words)


def project_items(of: Node, items: Sequence[tuple[str, exp.Expr]], translator: Translator) -> Node:
    """Project an input to these items; return the input if that changes nothing."""
    made: list[tuple[str, Expression]] = []
    fields: list[tuple[str, str]] = []
    for name, node in items:
        expression = translator.expression(node)
        kind = translator.type_of(expression, node)
        if kind == "null":
            raise CqlError("a NULL without a type cannot be a column: write CAST(NULL AS int64)", start_of(node))
        made.append((name, expression))
        fields.append((name, kind))
    if made == [(name, Column(name)) for name in of.schema]:
        return of
    return Project(of, tuple(made), Schema(tuple(fields)))
