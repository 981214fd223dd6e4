"""Pushes conditions down as far as results stay the same: fewer rows then enter windows and joins.

Babcock et al., "Chain": a window of the latest n rows does not commute with a selection: no condition passes one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from dsms.algebra import (
    Aggregate,
    Difference,
    Distinct,
    Join,
    Node,
    Project,
    Select,
    StoredRelation,
    ToStream,
    Union,
    Windowed,
    inputs_of,
    with_inputs,
)
from dsms.expressions.tree import Column, Expression, columns_of, conjuncts, rename_columns


def push_down_conditions(node: Node) -> Node:
    """Push every condition of a query down as far as possible."""
    if isinstance(node, Select):
        return reduce(_add_condition, conjuncts(node.condition), push_down_conditions(node.of))
    return with_inputs(node, [push_down_conditions(part) for part in inputs_of(node)])


def _add_condition(node: Node, condition: Expression) -> Node:
    """Add a condition to a node: below it if results stay the same, else on top."""
    below = _push_below(node, condition)
    return Select(node, condition) if below is None else below


def _push_below(node: Node, condition: Expression) -> Node | None:
    """Push a condition into a node; None if that would change the results."""
    match node:
        case Windowed(of, window) if window.kind != "rows":
            return replace(node, of=_add_condition(of, condition))
        case Select(of, _):
            inside = _push_below(of, condition)
            return None if inside is None else replace(node, of=inside)
        case Project(of, items):
            plain = {name: item.name for name, item in items if isinstance(item, Column)}
            if columns_of(condition) <= plain.keys():
                return replace(node, of=_add_condition(of, rename_columns(condition, plain)))
            return None  # an expression would be computed twice
        case Distinct(of) | ToStream(of, "istream" | "dstream"):
            return replace(node, of=_add_condition(of, condition))
        case Difference(left, _):
            return replace(node, left=_add_condition(left, condition))
        case Union(inputs=parts):
            names = [dict(zip(node.schema, part.schema, strict=True)) for part in parts]
            return Union(
                tuple(_add_condition(p, rename_columns(condition, n)) for p, n in zip(parts, names, strict=True))
            )
        case Aggregate(of, keys) if (used := columns_of(condition)) and used <= set(keys):
            return replace(node, of=_add_condition(of, condition))
        case Join():
            return _push_into_join(node, condition)
        case _:
            return None


def _push_into_join(join: Join, condition: Expression) -> Join | None:
    """Push a condition to the one input of a join that it refers to."""
    aliases = {name.partition(".")[0] for name in columns_of(condition)}
    if len(aliases) != 1:
        return None
    (alias,) = aliases
    part = dict(join.inputs)[alias]
    if isinstance(part, StoredRelation) or (isinstance(part, Windowed) and part.window.kind == "rows"):
        return None
    bare = rename_columns(condition, {name: name.partition(".")[2] for name in columns_of(condition)})
    inputs = tuple((name, _add_condition(each, bare) if name == alias else each) for name, each in join.inputs)
    return replace(join, inputs=inputs)
