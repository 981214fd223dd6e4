"""The items of a SELECT: what * stands for, what each output column is called, and the projection they make."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from sqlglot import exp

from dsms.algebra import Node, Project
from dsms.cql.errors import CqlError, start_of
from dsms.cql.scope import Scope
from dsms.cql.translate import Translator, is_aggregate
from dsms.errors import PlanError
from dsms.expressions.tree import Column, Expression
from dsms.schema import Schema


def named(nodes: Iterable[exp.Expr], scope: Scope) -> list[tuple[str, exp.Expr]]:
    """Each output column with its name, which no other has."""
    taken: set[str] = set()
    items = []
    for place, node in enumerate(nodes, start=1):
        for wanted, item in _expanded(node, scope, place):
            name = unique(wanted, taken)
            taken.add(name)
            items.append((name, item))
    return items


def unique(wanted: str, taken: Container[str]) -> str:
    """A name that is not taken yet: the wanted one, or with the first free number behind it."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _expanded(node: exp.Expr, scope: Scope, place: int) -> Iterator[tuple[str, exp.Expr]]:
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        yield _item(node, place)
        return
    if any(star.args.values()):
        raise CqlError("* with EXCEPT, REPLACE or RENAME is not part of CQL; name the columns", start_of(node))
    try:
        columns = scope.starred(node.table if isinstance(node, exp.Column) else "")
    except PlanError as error:
        raise CqlError(error.message, start_of(node)) from None
    for name, alias, column in columns:
        yield name, exp.column(exp.to_identifier(column), table=exp.to_identifier(alias) if alias else None)


def _item(node: exp.Expr, place: int) -> tuple[str, exp.Expr]:
    if not isinstance(node, exp.Alias):
        return _implied(node, place), node
    name = node.alias
    if not isinstance(node.args["alias"], exp.Identifier) or not name or "?" in name or "." in name:
        raise CqlError(f"{name!r} cannot be the name of a column: no ? and no . in it", start_of(node.args["alias"]))
    return name, node.this


def _implied(node: exp.Expr, place: int) -> str:
    """The name of an item that was given none."""
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


def projected(of: Node, items: Sequence[tuple[str, exp.Expr]], translator: Translator) -> Node:
    """The items over an input; the input itself where that changes nothing."""
    made: list[tuple[str, Expression]] = []
    fields: list[tuple[str, str]] = []
    for name, node in items:
        expression = translator.expression(node)
        kind = translator.type_of(expression, node)
        if kind == "null":
            raise CqlError("a NULL without a type is no column: CAST(NULL AS int64) is one", start_of(node))
        made.append((name, expression))
        fields.append((name, kind))
    if made == [(name, Column(name)) for name in of.schema]:
        return of
    return Project(of, tuple(made), Schema(tuple(fields)))
