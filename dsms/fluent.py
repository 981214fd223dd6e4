"""Continuous queries in Python: `stream("packets").where("size > 1000").select("src")`.

Each step gives a new query and leaves the old one as it was; names get their meaning when the tree is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from dsms.algebra import Apply, Difference, Distinct, Join, Node, Select, ToStream, Union, Window
from dsms.cql import Catalog, condition, selected
from dsms.cql.binder import check_alike, minus
from dsms.cql.scope import Scope
from dsms.cql.sources import Pairs, windowed
from dsms.durations import microseconds
from dsms.errors import PlanError
from dsms.schema import Schema

On = str | Sequence[str | tuple[str, str]]


@dataclass(frozen=True)
class Query:
    """A continuous query in the making."""

    build: Callable[[Catalog], Node]
    name: str = ""  # what a join calls it; empty for a join itself, whose inputs have names

    def node(self, catalog: Catalog) -> Node:
        """The tree, as the same query in CQL would give it."""
        return self.build(catalog)

    def alias(self, name: str) -> Query:
        """The same query under another name in joins."""
        return replace(self, name=name)

    def where(self, text: str) -> Query:
        """The rows for which a condition holds."""
        _texts(text)
        return self._then(lambda of, catalog: Select(of, condition(text, of.schema, catalog.functions)))

    def select(self, *texts: str, **named: str) -> Query:
        """New columns: expressions, called as CQL would call them or by the name given."""
        _texts(*texts, *named.values())
        return self._then(lambda of, catalog: selected(of, catalog, texts, named))

    def group_by(self, *keys: str) -> Groups:
        """The rows in groups of equal keys, to be aggregated."""
        return Groups(self, keys)

    def aggregate(self, **named: str) -> Query:
        """Aggregates of all rows."""
        return Groups(self, ()).aggregate(**named)

    def window(self, rows: int | None = None, range: str | None = None, slide: str | int | None = None) -> Query:
        """The last so many rows, or those of the last so much time."""
        return self._then(lambda of, _: windowed(of, window(rows, range, slide)))

    def join(self, other: Query, on: On = ()) -> Query:
        """Rows of both with equal values; the columns are then called name.column."""
        _query(other)
        return Query(lambda catalog: joined(self, other, on, catalog))

    def except_(self, other: Query, on: On | None = None) -> Query:
        """The rows whose columns equal those of no row of the other; without `on`, each row once as in EXCEPT."""
        _query(other)
        return self._then(lambda of, catalog: difference(of, other.node(catalog), on))

    def union(self, other: Query) -> Query:
        """The rows of both."""
        _query(other)
        return self._then(lambda of, catalog: united(of, other.node(catalog)))

    def distinct(self) -> Query:
        """Each row once."""
        return self._then(lambda of, _: Distinct(of))

    def istream(self) -> Query:
        """What comes to the relation, as a stream."""
        return self._changes("istream")

    def dstream(self) -> Query:
        """What goes from the relation, as a stream."""
        return self._changes("dstream")

    def rstream(self) -> Query:
        """All of the relation at each change, as a stream."""
        return self._changes("rstream")

    def split(self, *texts: str) -> tuple[Query, ...]:
        """One query for each condition; a row goes to all whose condition holds."""
        return tuple(self.where(text) for text in texts)

    def apply(self, function: str, schema: Schema | Mapping[str, str]) -> Query:
        """The user's `module:name`, called with whole batches; the schema is that of its results."""
        if not all(function.partition(":")):
            raise PlanError(f"{function!r} names no function: 'module:name' is wanted")
        columns = schema if isinstance(schema, Schema) else Schema.of(schema)
        return self._then(lambda of, _: Apply(of, function, columns))

    def _changes(self, kind: OneOf["istream", "dstream", "rstream"]) -> Query:
        return self._then(lambda of, _: ToStream(of, kind))

    def _then(self, step: Callable[[Node, Catalog], Node]) -> Query:
        return Query(lambda catalog: step(self.build(catalog), catalog), self.name)


@dataclass(frozen=True)
class Groups:
    """The rows of a query in groups."""

    of: Query
    keys: tuple[str, ...]

    def aggregate(self, **named: str) -> Query:
        """One row a group: the keys, then the aggregates or expressions over them."""
        return self.of._then(lambda of, catalog: selected(of, catalog, self.keys, named, self.keys))


def stream(name: str) -> Query:
    """What the catalog calls so: a stream, a stored relation, another query."""
    _texts(name)
    return Query(lambda catalog: catalog.source(name), name)


def _texts(*given: object) -> None:
    for text in given:
        if not isinstance(text, str):
            raise PlanError(f"{text!r} given; a text is wanted")


def _query(given: object) -> None:
    if not isinstance(given, Query):
        raise PlanError(f"{given!r} given; a query is wanted, as stream({given!r}) makes one")


def window(rows: int | None, range: str | None, slide: str | int | None) -> Window:
    """A window as it is written in Python."""
    if (rows is None) == (range is None):
        raise PlanError(f"a window has rows or a range; not {rows=} {range=}")
    if range is not None:
        step = 0 if slide is None else microseconds(slide)
        if slide is not None and not step:
            raise PlanError(f"a window wants a slide above 0, not {slide!r}")
        return Window("range", microseconds(range), step)
    return Window("rows", _number(rows), 0 if slide is None else _number(slide))


def _number(rows: object) -> int:
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise PlanError(f"a window wants a whole number of rows above 0, not {rows!r}")
    return rows


def joined(one: Query, other: Query, on: On, catalog: Catalog) -> Node:
    """A join of two; what is a join already takes the other as one more input."""
    left, right = one.node(catalog), other.node(catalog)
    known = left if isinstance(left, Join) and not one.name else Join(((one.name, left),), (), left.schema)
    inputs = known.inputs
    names = [*(name for name, _ in inputs), other.name]
    if not all(names) or len({*names}) < len(names):
        raise PlanError(f"the inputs of a join want different names, given with alias(...), not {names}")
    scope = Scope.joined(tuple((name, part.schema) for name, part in inputs))
    its = Scope.joined(((other.name, right.schema),))
    every = (*inputs, (other.name, right))
    schema = Scope.joined(tuple((name, part.schema) for name, part in every)).schema
    return Join(every, (*known.on, *pairs(on, scope, its)), schema)


def difference(left: Node, right: Node, on: On | None) -> Node:
    """The generalised difference, or without columns that of sets."""
    if on is None:
        check_alike(left, right)
        return minus(left, right)
    return Difference(left, right, pairs(on, Scope.within(left.schema), Scope.within(right.schema)))


def united(left: Node, right: Node) -> Node:
    """One union, however many inputs were added one by one."""
    check_alike(left, right)
    return Union((*left.inputs, right) if isinstance(left, Union) else (left, right))


def pairs(on: On, left: Scope, right: Scope) -> Pairs:
    """Columns to compare, each of its own side."""
    found = []
    for part in [on] if isinstance(on, str) else on:
        mine, its = (part, part) if isinstance(part, str) else part
        one, other = full(left, mine), full(right, its)
        if left.schema[one] != right.schema[other]:
            raise PlanError(f"{one!r} is {left.schema[one]} and {other!r} {right.schema[other]}: they never compare")
        found.append((one, other))
    return tuple(found)


def full(scope: Scope, name: str) -> str:
    """A column as the batch calls it, from its name or alias.name."""
    alias, _, column = name.rpartition(".")
    return scope.column(column, alias).name
