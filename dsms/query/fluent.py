"""Builds continuous queries in Python: `stream("packets").where("size > 1000").select("src")`.

Each step returns a new query and leaves the old one unchanged; names are resolved when the query is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from dsms.algebra import Apply, Difference, Distinct, Join, Node, Select, ToStream, Union, Window
from dsms.data.schema import Schema
from dsms.durations import parse_duration_us
from dsms.errors import PlanError
from dsms.query.cql import Catalog, compile_condition, compile_select
from dsms.query.cql.binder import check_same_types, make_except
from dsms.query.cql.from_clause import Pairs, make_windowed
from dsms.query.cql.scope import Scope

On = str | Sequence[str | tuple[str, str]]


@dataclass(frozen=True)
class QueryBuilder:
    """A continuous query that can be extended step by step."""

    build: Callable[[Catalog], Node]
    name: str = ""  # its name in joins; empty for a join, whose inputs have names

    def node(self, catalog: Catalog) -> Node:
        """Compile to the same tree as the equivalent CQL query."""
        return self.build(catalog)

    def alias(self, name: str) -> QueryBuilder:
        """Give the query another name in joins."""
        return replace(self, name=name)

    def where(self, text: str) -> QueryBuilder:
        """Keep the rows for which a condition holds."""
        _check_texts(text)
        return self._then(lambda of, catalog: Select(of, compile_condition(text, of.schema, catalog.functions)))

    def select(self, *texts: str, **named: str) -> QueryBuilder:
        """Compute columns from expressions; each has the name that CQL would give it, or its keyword."""
        _check_texts(*texts, *named.values())
        return self._then(lambda of, catalog: compile_select(of, catalog, texts, named))

    def group_by(self, *keys: str) -> GroupedQuery:
        """Group rows by equal keys, to aggregate them."""
        return GroupedQuery(self, keys)

    def aggregate(self, **named: str) -> QueryBuilder:
        """Aggregate all rows."""
        return GroupedQuery(self, ()).aggregate(**named)

    def window(self, rows: int | None = None, range: str | None = None, slide: str | int | None = None) -> QueryBuilder:
        """Keep the last `rows` rows, or the rows of the last `range` of time."""
        return self._then(lambda of, _: make_windowed(of, make_window(rows, range, slide)))

    def join(self, other: QueryBuilder, on: On = ()) -> QueryBuilder:
        """Join rows with equal values; the columns are then called name.column."""
        _check_query(other)
        return QueryBuilder(lambda catalog: join_nodes(self, other, on, catalog))

    def except_(self, other: QueryBuilder, on: On | None = None) -> QueryBuilder:
        """Keep the rows that match no row of the other query; without `on`, each row once as in EXCEPT."""
        _check_query(other)
        return self._then(lambda of, catalog: subtract_nodes(of, other.node(catalog), on))

    def union(self, other: QueryBuilder) -> QueryBuilder:
        """Put out the rows of both queries."""
        _check_query(other)
        return self._then(lambda of, catalog: union_nodes(of, other.node(catalog)))

    def distinct(self) -> QueryBuilder:
        """Keep each row once."""
        return self._then(lambda of, _: Distinct(of))

    def istream(self) -> QueryBuilder:
        """Stream the rows that are inserted into the relation."""
        return self._changes("istream")

    def dstream(self) -> QueryBuilder:
        """Stream the rows that are deleted from the relation."""
        return self._changes("dstream")

    def rstream(self) -> QueryBuilder:
        """Stream the whole relation at each change."""
        return self._changes("rstream")

    def split(self, *texts: str) -> tuple[QueryBuilder, ...]:
        """Make one query for each condition; a row goes to every query whose condition holds."""
        return tuple(self.where(text) for text in texts)

    def apply(self, function: str, schema: Schema | Mapping[str, str]) -> QueryBuilder:
        """Call the user's function `module:name` with whole batches; the schema is that of its results."""
        if not all(function.partition(":")):
            raise PlanError(f"{function!r} names no function: expected 'module:name'")
        columns = schema if isinstance(schema, Schema) else Schema.of(schema)
        return self._then(lambda of, _: Apply(of, function, columns))

    def _changes(self, kind: OneOf["istream", "dstream", "rstream"]) -> QueryBuilder:
        return self._then(lambda of, _: ToStream(of, kind))

    def _then(self, step: Callable[[Node, Catalog], Node]) -> QueryBuilder:
        return QueryBuilder(lambda catalog: step(self.build(catalog), catalog), self.name)


@dataclass(frozen=True)
class GroupedQuery:
    """A query whose rows are grouped by keys."""

    of: QueryBuilder
    keys: tuple[str, ...]

    def aggregate(self, **named: str) -> QueryBuilder:
        """Put out one row for each group: the keys, then the aggregates or expressions over them."""
        return self.of._then(lambda of, catalog: compile_select(of, catalog, self.keys, named, self.keys))


def stream(name: str) -> QueryBuilder:
    """Start a query from a stream, a stored relation or another query."""
    _check_texts(name)
    return QueryBuilder(lambda catalog: catalog.source(name), name)


def _check_texts(*texts: object) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise PlanError(f"{text!r} is not a string")


def _check_query(given: object) -> None:
    if not isinstance(given, QueryBuilder):
        raise PlanError(f"{given!r} is not a query: stream({given!r}) makes one")


def make_window(rows: int | None, range: str | None, slide: str | int | None) -> Window:
    """Make a window of its arguments in Python."""
    if (rows is None) == (range is None):
        raise PlanError(f"a window has rows or a range; not {rows=} {range=}")
    if range is not None:
        step = 0 if slide is None else parse_duration_us(slide)
        if slide is not None and not step:
            raise PlanError(f"a window needs a slide above 0, not {slide!r}")
        return Window("range", parse_duration_us(range), step)
    return Window("rows", _check_row_count(rows), 0 if slide is None else _check_row_count(slide))


def _check_row_count(rows: object) -> int:
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise PlanError(f"a window needs a whole number of rows above 0, not {rows!r}")
    return rows


def join_nodes(one: QueryBuilder, other: QueryBuilder, on: On, catalog: Catalog) -> Node:
    """Join two queries; a join takes the other query as one more input."""
    left, right = one.node(catalog), other.node(catalog)
    known = left if isinstance(left, Join) and not one.name else Join(((one.name, left),), (), left.schema)
    inputs = known.inputs
    names = [*(name for name, _ in inputs), other.name]
    if not all(names) or len({*names}) < len(names):
        raise PlanError(f"the inputs of a join need different names: use alias(...); there are {names}")
    scope = Scope.joined(tuple((name, part.schema) for name, part in inputs))
    its = Scope.joined(((other.name, right.schema),))
    every = (*inputs, (other.name, right))
    schema = Scope.joined(tuple((name, part.schema) for name, part in every)).schema
    return Join(every, (*known.on, *resolve_join_columns(on, scope, its)), schema)


def subtract_nodes(left: Node, right: Node, on: On | None) -> Node:
    """The generalised difference; without columns, the difference of sets."""
    if on is None:
        check_same_types(left, right)
        return make_except(left, right)
    return Difference(left, right, resolve_join_columns(on, Scope.within(left.schema), Scope.within(right.schema)))


def union_nodes(left: Node, right: Node) -> Node:
    """Make one union of all inputs, even if they are added one by one."""
    check_same_types(left, right)
    return Union((*left.inputs, right) if isinstance(left, Union) else (left, right))


def resolve_join_columns(on: On, left: Scope, right: Scope) -> Pairs:
    """The columns to compare, from the left and from the right."""
    pairs = []
    for part in [on] if isinstance(on, str) else on:
        mine, its = (part, part) if isinstance(part, str) else part
        one, other = qualify_column(left, mine), qualify_column(right, its)
        if left.schema[one] != right.schema[other]:
            raise PlanError(f"{one!r} is {left.schema[one]} and {other!r} {right.schema[other]}: their types differ")
        pairs.append((one, other))
    return tuple(pairs)


def qualify_column(scope: Scope, name: str) -> str:
    """Resolve `name` or `alias.name` to a column of the batch."""
    alias, _, column = name.rpartition(".")
    return scope.column(column, alias).name
