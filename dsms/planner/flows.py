"""Joins and differences as flows: which columns of which inputs are one attribute, and the expression over them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import replace

from dsms import dataflow
from dsms.algebra import (
    Difference,
    Emit,
    Flow,
    Input,
    Join,
    Named,
    Node,
    Project,
    Select,
    Stored,
    Stream,
    Window,
    Windowed,
)
from dsms.expressions.tree import Call, Column
from dsms.schema import Schema

EVERYTHING = "*"  # an attribute that all rows have in common: of inputs that no condition connects


def lowered(node: Node, wanted: Collection[str], emit: Emit = "both") -> Node:
    """A join or difference as a flow that puts out the wanted columns, under the names they have."""
    # Inputs are told apart by identity, and a query may take a part away from itself.
    node = replace(node, right=copy.copy(node.right)) if isinstance(node, Difference) else node
    found = _Attributes(node)
    names = [name for name in node.schema if name in wanted] or list(node.schema)[:1]
    full = {name: found.qualified(node, name) for name in names}
    columns = {full[name]: node.schema[name] for name in names}
    compared = {column: found.type_of(column) for pair in found.also for column in pair}
    above: Node = Flow(found.inputs(), found.expression(node), Schema(tuple((compared | columns).items())), emit)
    for one, other in found.also:
        above = Select(above, Call("=", (Column(one), Column(other))))
    if list(above.schema) == names:
        return above
    items = tuple((name, Column(qualified)) for name, qualified in full.items())
    return Project(above, items, Schema(tuple((name, node.schema[name]) for name in names)))


class _Attributes:
    """The inputs of nested joins and differences, and the attributes that their columns are."""

    def __init__(self, node: Node) -> None:
        self._inputs: list[Input] = []
        self._alias: dict[int, str] = {}  # of inputs that have none in the query, by identity
        self._classes: dict[str, set[str]] = {}  # by qualified column: all that must equal it
        self._takes_away: list[tuple[str, str]] = []  # columns compared by differences
        self.also: list[tuple[str, str]] = []  # equalities inside one input, which the others imply
        self._walk(node)
        self._columns: dict[str, dict[str, str]] = {part.alias: {} for part in self._inputs}
        self._name_attributes()

    def inputs(self) -> tuple[Input, ...]:
        return tuple(replace(part, attributes=tuple(self._columns[part.alias].items())) for part in self._inputs)

    def type_of(self, column: str) -> str:
        alias, _, name = column.partition(".")
        return next(part.of.schema[name] for part in self._inputs if part.alias == alias)

    def qualified(self, node: Node, name: str) -> str:
        """What a column of a part is called in the flow."""
        if isinstance(node, Join):
            return name
        return self.qualified(node.left, name) if isinstance(node, Difference) else f"{self._alias[id(node)]}.{name}"

    def expression(self, node: Node) -> dataflow.Expression:
        if isinstance(node, Difference):
            left, right = self.expression(node.left), self.expression(node.right)
            pairs = ((self.qualified(node.left, mine), theirs) for mine, theirs in node.on)
            return dataflow.Difference(left, right, [self._attribute(mine) for mine, _ in pairs])
        if not isinstance(node, Join):
            return self._leaf(self._alias[id(node)])
        leaves = [self._leaf(alias) for alias, _ in node.inputs]
        joined: dataflow.Expression = leaves.pop(0)
        while leaves:
            nearest = next(leaf for leaf in leaves if set(leaf.attributes) & set(joined.attributes))
            leaves.remove(nearest)
            joined = dataflow.Join(joined, nearest, sorted(set(nearest.attributes) & set(joined.attributes)))
        return joined

    def _walk(self, node: Node) -> None:
        if isinstance(node, Difference):
            self._walk(node.left)
            self._alias[id(node.right)] = self._add(_called(node.right), node.right)
            for mine, theirs in node.on:
                left = self.qualified(node.left, mine)
                self._classes.setdefault(left, {left})
                self._takes_away.append((left, f"{self._alias[id(node.right)]}.{theirs}"))
        elif isinstance(node, Join):
            for alias, part in node.inputs:
                self._add(alias, part)
            for one, other in node.on:
                together = self._classes.get(one, {one}) | self._classes.get(other, {other})
                self._classes.update(dict.fromkeys(together, together))
            self._connect(node)
        else:
            self._alias[id(node)] = self._add(_called(node), node)

    def _add(self, alias: str, node: Node) -> str:
        taken = {part.alias for part in self._inputs} | {dataflow.RESULT}
        alias = next(name for name in _numbered(alias) if name not in taken)
        if isinstance(node, Windowed) and not node.window.slide:
            self._inputs.append(Input(alias, node.of, node.window))
        else:
            self._inputs.append(Input(alias, node, Window() if node.appends else None))
        return alias

    def _connect(self, join: Join) -> None:
        """Where conditions leave inputs unconnected, every row of one meets every row of the other."""
        reached, aliases = set[str](), [alias for alias, _ in join.inputs]
        ahead = aliases[:1]
        while ahead:
            alias = ahead.pop()
            reached.add(alias)
            mine = {column for key, same in self._classes.items() if _of(key) == alias for column in same}
            ahead += [other for other in map(_of, mine) if other not in reached]
        if reached.issuperset(aliases):
            return
        together = {f"{alias}.{EVERYTHING}" for alias in aliases}
        self._classes.update(dict.fromkeys(together, together))

    def _name_attributes(self) -> None:
        self._names: dict[int, str] = {}
        used: set[str] = set()
        for same in {id(same): same for same in self._classes.values()}.values():
            bare = sorted({column.partition(".")[2] for column in same})
            name = next(name for name in _numbered("=".join(bare)) if name not in used)
            used.add(name)
            self._names[id(same)] = name
            for column in sorted(same):
                alias, _, own = column.partition(".")
                if name in self._columns[alias]:
                    self.also.append((f"{alias}.{self._columns[alias][name]}", column))
                else:
                    self._columns[alias][name] = "" if own == EVERYTHING else own
        for left, right in self._takes_away:
            alias, _, own = right.partition(".")
            self._columns[alias][self._attribute(left)] = own

    def _attribute(self, column: str) -> str:
        return self._names[id(self._classes[column])]

    def _leaf(self, alias: str) -> dataflow.Stream:
        return dataflow.Stream(alias, tuple(self._columns[alias]) or (EVERYTHING,))


def _called(node: Node) -> str:
    """A name for an input that the query gives none."""
    while not isinstance(node, Stream | Named | Stored):
        if isinstance(node, Join | Difference | Flow) or not hasattr(node, "of"):
            return "part"
        node = node.of
    return node.name


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _of(column: str) -> str:
    return column.partition(".")[0]
