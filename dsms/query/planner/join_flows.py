"""Turns joins and differences into dataflow expressions: columns that must be equal become one attribute."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import replace

from dsms import dataflow
from dsms.algebra import (
    AliasedNode,
    Difference,
    Emit,
    Join,
    MultiwayJoin,
    MultiwayJoinInput,
    Node,
    Project,
    Select,
    StoredRelation,
    StreamScan,
    Window,
    Windowed,
)
from dsms.data.schema import Schema
from dsms.expressions.tree import Call, Column

COMMON_ATTRIBUTE = "*"  # an attribute equal in all rows: joins inputs that no condition connects


def lower_join(node: Node, columns_used: Collection[str], emit: Emit = "both") -> Node:
    """Turn a join or difference into a multiway join that puts out these columns under their names."""
    # Inputs are distinguished by identity, and a query may subtract a part from itself.
    node = replace(node, right=copy.copy(node.right)) if isinstance(node, Difference) else node
    attributes = _Attributes(node)
    names = [name for name in node.schema if name in columns_used] or list(node.schema)[:1]
    full = {name: attributes.qualified(node, name) for name in names}
    columns = {full[name]: node.schema[name] for name in names}
    compared = {column: attributes.type_of(column) for pair in attributes.also for column in pair}
    above: Node = MultiwayJoin(
        attributes.inputs(), attributes.expression(node), Schema(tuple((compared | columns).items())), emit
    )
    for one, other in attributes.also:
        above = Select(above, Call("=", (Column(one), Column(other))))
    if list(above.schema) == names:
        return above
    items = tuple((name, Column(qualified)) for name, qualified in full.items())
    return Project(above, items, Schema(tuple((name, node.schema[name]) for name in names)))


class _Attributes:
    """The inputs of nested joins and differences, and the attributes that their columns stand for."""

    def __init__(self, node: Node) -> None:
        self._inputs: list[MultiwayJoinInput] = []
        self._alias: dict[int, str] = {}  # of inputs that have none in the query, by identity
        self._classes: dict[str, set[str]] = {}  # by qualified column: all columns that must equal it
        self._subtracted: list[tuple[str, str]] = []  # columns compared by differences
        self.also: list[tuple[str, str]] = []  # equalities inside one input, which the others imply
        self._walk(node)
        self._columns: dict[str, dict[str, str]] = {part.alias: {} for part in self._inputs}
        self._name_attributes()

    def inputs(self) -> tuple[MultiwayJoinInput, ...]:
        return tuple(
            replace(part, attributes=tuple((name, own) for name, own in self._columns[part.alias].items() if own))
            for part in self._inputs
        )

    def type_of(self, column: str) -> str:
        alias, _, name = column.partition(".")
        return next(part.of.schema[name] for part in self._inputs if part.alias == alias)

    def qualified(self, node: Node, name: str) -> str:
        """The name of a part's column in the multiway join."""
        if isinstance(node, Join):
            return name
        return self.qualified(node.left, name) if isinstance(node, Difference) else f"{self._alias[id(node)]}.{name}"

    def expression(self, node: Node) -> dataflow.Expression:
        if isinstance(node, Difference):
            left, right = self.expression(node.left), self.expression(node.right)
            pairs = ((self.qualified(node.left, mine), theirs) for mine, theirs in node.on)
            return dataflow.DifferenceTerm(left, right, list(dict.fromkeys(self._attribute(mine) for mine, _ in pairs)))
        if not isinstance(node, Join):
            return self._leaf(self._alias[id(node)])
        leaves = [self._leaf(alias) for alias, _ in node.inputs]
        joined: dataflow.Expression = leaves.pop(0)
        while leaves:
            nearest = next(leaf for leaf in leaves if set(leaf.attributes) & set(joined.attributes))
            leaves.remove(nearest)
            joined = dataflow.JoinTerm(joined, nearest, sorted(set(nearest.attributes) & set(joined.attributes)))
        return joined

    def _walk(self, node: Node) -> None:
        if isinstance(node, Difference):
            self._walk(node.left)
            self._walk_right_side(node)
        elif isinstance(node, Join):
            for alias, part in node.inputs:
                self._add(alias, part)
            for one, other in node.on:
                together = self._classes.get(one, {one}) | self._classes.get(other, {other})
                self._classes.update(dict.fromkeys(together, together))
            self._connect(node)
        else:
            self._alias[id(node)] = self._add(_default_alias(node), node)

    def _walk_right_side(self, node: Difference) -> None:
        """Add the right side of a difference; two of its columns that are compared with one are made equal first."""
        right, compared = node.right, dict[int, tuple[str, str]]()
        for mine, theirs in node.on:
            left = self.qualified(node.left, mine)
            _, first = compared.setdefault(id(self._classes.setdefault(left, {left})), (left, theirs))
            if theirs != first:
                right = Select(right, Call("=", (Column(first), Column(theirs))))
        alias = self._alias[id(node.right)] = self._add(_default_alias(node.right), right)
        self._subtracted += [(left, f"{alias}.{theirs}") for left, theirs in compared.values()]

    def _add(self, alias: str, node: Node) -> str:
        taken = {part.alias for part in self._inputs} | {dataflow.RESULT_WINDOW}
        alias = next(name for name in _number_names(alias) if name not in taken)
        if isinstance(node, Windowed) and not node.window.slide:
            self._inputs.append(MultiwayJoinInput(alias, node.of, node.window))
        else:
            self._inputs.append(MultiwayJoinInput(alias, node, Window() if node.is_append_only else None))
        return alias

    def _connect(self, join: Join) -> None:
        """Join inputs that no condition connects by an attribute that is equal in all rows."""
        reached, aliases = set[str](), [alias for alias, _ in join.inputs]
        ahead = aliases[:1]
        while ahead:
            alias = ahead.pop()
            reached.add(alias)
            mine = {column for key, same in self._classes.items() if _alias_of(key) == alias for column in same}
            ahead += [other for other in map(_alias_of, mine) if other not in reached]
        if reached.issuperset(aliases):
            return
        together = {f"{alias}.{COMMON_ATTRIBUTE}" for alias in aliases}
        self._classes.update(dict.fromkeys(together, together))

    def _name_attributes(self) -> None:
        self._names: dict[int, str] = {}
        used: set[str] = set()
        for same in {id(same): same for same in self._classes.values()}.values():
            bare = sorted({column.partition(".")[2] for column in same})
            name = next(name for name in _number_names("=".join(bare)) if name not in used)
            used.add(name)
            self._names[id(same)] = name
            for column in sorted(same):
                alias, _, own = column.partition(".")
                if name in self._columns[alias]:
                    self.also.append((f"{alias}.{self._columns[alias][name]}", column))
                else:
                    self._columns[alias][name] = "" if own == COMMON_ATTRIBUTE else own
        for left, right in self._subtracted:
            alias, _, own = right.partition(".")
            self._columns[alias][self._attribute(left)] = own

    def _attribute(self, column: str) -> str:
        return self._names[id(self._classes[column])]

    def _leaf(self, alias: str) -> dataflow.StreamTerm:
        return dataflow.StreamTerm(alias, tuple(self._columns[alias]) or (COMMON_ATTRIBUTE,))


def _default_alias(node: Node) -> str:
    """A name for an input that has none in the query."""
    while not isinstance(node, StreamScan | AliasedNode | StoredRelation):
        if isinstance(node, Join | Difference | MultiwayJoin) or not hasattr(node, "of"):
            return "part"
        node = node.of
    return node.name


def _number_names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _alias_of(column: str) -> str:
    return column.partition(".")[0]
