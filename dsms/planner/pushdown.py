"""Conditions as far down as they mean the same: the fewer rows get into a window or a join, the better.

Babcock et al., "Chain": a window of the latest n rows does not commute with a selection, so none crosses one.
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
    Stored,
    ToStream,
    Union,
    Windowed,
    inputs_of,
    with_inputs,
)
from dsms.expressions.tree import Column, Expression, columns_of, conjuncts, renamed


def pushed(node: Node) -> Node:
    """The same query with every condition where it meets the rows first."""
    if isinstance(node, Select):
        return reduce(_above, conjuncts(node.condition), pushed(node.of))
    return with_inputs(node, [pushed(part) for part in inputs_of(node)])


def _above(node: Node, condition: Expression) -> Node:
    """The node with one more condition: below it if that is the same, else on top."""
    below = _below(node, condition)
    return Select(node, condition) if below is None else below


def _below(node: Node, condition: Expression) -> Node | None:
    """The node with the condition somewhere inside; None where that would mean something else."""
    match node:
        case Windowed(of, window) if window.kind != "rows":
            return replace(node, of=_above(of, condition))
        case Select(of, _):
            inside = _below(of, condition)
            return None if inside is None else replace(node, of=inside)
        case Project(of, items):
            plain = {name: item.name for name, item in items if isinstance(item, Column)}
            if columns_of(condition) <= plain.keys():
                return replace(node, of=_above(of, renamed(condition, plain)))
            return None  # an expression would be worked out twice
        case Distinct(of) | ToStream(of, "istream" | "dstream"):
            return replace(node, of=_above(of, condition))
        case Difference(left, _):
            return replace(node, left=_above(left, condition))
        case Union(inputs=parts):
            names = [dict(zip(node.schema, part.schema, strict=True)) for part in parts]
            return Union(tuple(_above(p, renamed(condition, n)) for p, n in zip(parts, names, strict=True)))
        case Aggregate(of, keys) if (used := columns_of(condition)) and used <= set(keys):
            return replace(node, of=_above(of, condition))
        case Join():
            return _into(node, condition)
        case _:
            return None


def _into(join: Join, condition: Expression) -> Join | None:
    """The join with the condition on the one input that it is about."""
    aliases = {name.partition(".")[0] for name in columns_of(condition)}
    if len(aliases) != 1:
        return None
    (alias,) = aliases
    part = dict(join.inputs)[alias]
    if isinstance(part, Stored) or (isinstance(part, Windowed) and part.window.kind == "rows"):
        return None
    bare = renamed(condition, {name: name.partition(".")[2] for name in columns_of(condition)})
    inputs = tuple((name, _above(each, bare) if name == alias else each) for name, each in join.inputs)
    return replace(join, inputs=inputs)
