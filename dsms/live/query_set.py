"""The queries of a running plan: adding, removing and moving queries keeps the stations of all others unchanged.

A query that is added later reads only rows that arrive from then on. So it shares only stateless stations with older
queries: the entry of a stream, filters and projections on it. Stations with state it gets for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dsms.algebra import AliasedNode, Apply, Node, Project, Select, StreamScan, inputs_of
from dsms.config.fields import check_table
from dsms.data.batch import Batch
from dsms.errors import PlanError, existing
from dsms.live.query_placement import find_colocated
from dsms.plan.graph import Plan, Query, Station, Stream
from dsms.query.plan_file import check_plan, compile_plan, read_compile_context
from dsms.query.planner import ExistingQueries
from dsms.query.query_reader import QueryReader
from dsms.query.stream_reader import read_stream

MERGEABLE_TABLES = (
    "streams",
    "relations",
    "functions",
    "queries",
)  # the tables of a plan that can be added while it runs


@dataclass(frozen=True)
class _QueryEntry:
    """What a query set stores about a query besides its stations."""

    entry: Any  # its entry in the plan's table
    node: Node | None
    roots: tuple[str, ...]  # its last stations; all others are upstream of them
    reads: frozenset[str]  # names of other queries


class QuerySet:
    """Queries and their plan; immutable: every change makes a new set with a new plan."""

    plan: Plan

    def __init__(
        self,
        table: Mapping[str, Any],
        folder: Path = Path(),
        file: str = "",
        queries: Collection[str] | None = None,
    ) -> None:
        self.plan, reader = compile_plan(table, folder, file)
        context = reader.context or read_compile_context(table, {}, folder)
        self._rest = {key: value for key, value in table.items() if key not in MERGEABLE_TABLES}
        self._tables: dict[str, dict[str, Any]] = {kind: dict(table.get(kind, {})) for kind in MERGEABLE_TABLES[:3]}
        self._relations, self._functions = dict(context.relations), dict(context.functions)
        self._members: dict[str, _QueryEntry] = {}
        self._parts: dict[Node, str] = {}
        self._enter(reader, table)
        if queries is not None:
            self._keep(self._with_read(queries))

    @property
    def table(self) -> dict[str, Any]:
        """The present queries as the table of a plan file."""
        tables = {kind: dict(entries) for kind, entries in self._tables.items() if entries}
        return {**self._rest, **tables, "queries": {name: member.entry for name, member in self._members.items()}}

    def add(self, table: Mapping[str, Any], folder: Path | None = None, file: str = "") -> QuerySet:
        """A set with the queries of this table too; its file names are relative to `folder`, by default the plan's."""
        after = self._copy()
        try:
            after._add(table, self.plan.folder if folder is None else folder)
        except PlanError as error:
            raise error.within("", file) from None
        return after

    def remove(self, query: str) -> QuerySet:
        """A set without this query."""
        self._known([query])
        if readers := [name for name, member in self._members.items() if query in member.reads]:
            raise PlanError(f"query {query!r} cannot be removed: {readers} read it", file=self.plan.name)
        after = self._copy()
        after._keep({name for name in self._members if name != query})
        return after

    def split(self, queries: Collection[str]) -> tuple[QuerySet, QuerySet]:
        """A set without these queries and their colocated queries, and a set of these alone, for another domain."""
        self._known(queries)
        going = {name for query in queries for name in find_colocated(self.plan, query)}
        stay, gone = self._copy(), self._copy()
        stay._keep(self._members.keys() - going)
        gone._keep(going)
        return stay, gone

    def merge(self, moved: QuerySet) -> QuerySet:
        """A set with the queries of another set too, their stations unchanged."""
        theirs, after = moved.plan, self._copy()
        if theirs.settings != self.plan.settings:
            raise PlanError(
                f"queries {list(moved._members)} have other settings in [run] than the domain they move to",
                "run",
                self.plan.name,
            )
        for kind, plan_names in (("query", _queries), ("operator", _stations)):
            if taken := sorted(plan_names(self.plan) & plan_names(theirs)):
                raise PlanError(f"there is another {kind} {taken[0]!r} already", file=self.plan.name)
        fresh = after._announce(moved._tables)
        streams = [replace(s, consumers=[]) for s in theirs.streams if s.name in fresh["streams"]]
        mine, coming = _copy_parts(self.plan), _copy_parts(theirs)
        after._relations.update(moved._relations)
        after._functions.update(moved._functions)
        after._members.update(moved._members)
        after._parts = {**moved._parts, **self._parts}
        after.plan = _join_parts(self.plan, [*mine.streams, *streams], (mine, coming))
        return after

    def __getstate__(self) -> dict[str, Any]:
        # Stations refer to each other: pickling a long chain would exceed the recursion limit.
        flat = [(s.name, s.query.name, s.operator, [p.name for p in s.inputs]) for s in self.plan.stations]
        streams = [replace(stream, consumers=[]) for stream in self.plan.streams]
        queries = [replace(query, stations=[]) for query in self.plan.queries]
        bare = replace(self.plan, streams=[], stations=[], queries=[])
        return {**vars(self), "plan": bare, "flat": (flat, streams, queries)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        flat, streams, queries = state.pop("flat")
        vars(self).update(state)
        by_name, whose = {stream.name: stream for stream in streams}, {query.name: query for query in queries}
        stations = []
        for name, query, operator, inputs in flat:
            by_name[name] = station = Station(name, whose[query], operator, tuple(by_name[p] for p in inputs))
            station.query.stations.append(station)
            stations.append(station)
        self.plan = replace(self.plan, streams=streams, stations=stations, queries=queries)

    def _copy(self) -> QuerySet:
        after = object.__new__(QuerySet)
        vars(after).update(vars(self))
        after._tables = {kind: dict(entries) for kind, entries in self._tables.items()}
        after._relations, after._functions = dict(self._relations), dict(self._functions)
        after._members, after._parts = dict(self._members), dict(self._parts)
        return after

    def _add(self, table: Mapping[str, Any], folder: Path) -> None:
        for key in table:
            if key not in MERGEABLE_TABLES:
                raise PlanError(
                    f"[{key}] cannot be added to a running plan; there may be {list(MERGEABLE_TABLES)}", key
                )
        for name in check_table(table.get("queries", {}), "queries"):
            if name in self._members:
                raise PlanError(f"there is a query {name!r} already", f"queries.{name}")
        fresh = self._announce({kind: check_table(table.get(kind, {}), kind) for kind in MERGEABLE_TABLES[:3]})
        there, settings = _copy_parts(self.plan), self.plan.settings
        there.streams += [read_stream(name, given, folder) for name, given in fresh["streams"].items()]
        existing_queries, streams = self._standing(there), {stream.name: stream for stream in there.streams}
        context = read_compile_context(fresh, streams, folder)
        self._relations.update(context.relations)
        self._functions.update(context.functions)
        reader = QueryReader(streams, settings, folder, existing_queries)
        reader.read(table)
        context = replace(
            context, relations=self._relations, functions=self._functions, existing_queries=existing_queries
        )
        if reader.written:
            reader.write(context)
        came = reader.stations()
        self._check_reading(reader.queries)
        coming = _PlanParts([], came, reader.queries)
        self.plan = _join_parts(self.plan, there.streams, (there, coming))
        check_plan(self.plan)
        self._enter(reader, table)

    def _announce(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Add streams, relations and functions; answers the new ones. An existing one must be equal."""
        fresh: dict[str, dict[str, Any]] = {}
        for kind, entries in tables.items():
            known = self._tables[kind]
            fresh[kind] = {name: entry for name, entry in entries.items() if name not in known}
            for name, entry in entries.items():
                if name in known and not _is_same(entry, known[name]):
                    raise PlanError(
                        f"there is another {name!r} already, {known[name]!r}: give this one another name",
                        f"{kind}.{name}",
                    )
            known.update(fresh[kind])
        if clash := sorted(fresh["streams"].keys() & (_stations(self.plan) | _queries(self.plan))):
            what = "a query" if clash[0] in self._members else "an operator"
            raise PlanError(
                f"there is {what} {clash[0]!r} too: give the stream another name, so that inputs are clear",
                f"streams.{clash[0]}",
            )
        return fresh

    def _standing(self, there: _PlanParts) -> ExistingQueries:
        """What new queries may read and share."""
        by_name = {station.name: station for station in there.stations}
        written = {name: member for name, member in self._members.items() if member.node is not None}
        return ExistingQueries(
            {name: member.node for name, member in written.items() if member.node is not None},
            {name: by_name[member.roots[0]] for name, member in written.items()},
            {node: by_name[name] for node, name in self._parts.items() if _is_stateless(node)},
            there.stations,
        )

    def _check_reading(self, queries: Iterable[Query]) -> None:
        """Refuse to read a running relation: it would delete rows that the new query has never seen."""
        for query in queries:
            for part in _find_read_queries(query.node):
                if part.name in self._members and not part.is_append_only:
                    raise PlanError(
                        f"it reads {part.name!r}, which already runs and deletes rows that this query has not seen: "
                        f"add the two together, or make {part.name!r} an ISTREAM",
                        f"queries.{query.name}.cql",
                    )

    def _enter(self, reader: QueryReader, table: Mapping[str, Any]) -> None:
        """Store the entries of new queries."""
        for query in reader.queries:
            written = query.name in reader.written
            roots = [reader.output_stations[query.name]] if written else query.stations
            reads = {part.name for part in _find_read_queries(query.node)} | reader.reads.get(query.name, set())
            names = tuple(station.name for station in roots)
            self._members[query.name] = _QueryEntry(table["queries"][query.name], query.node, names, frozenset(reads))
        self._parts.update((node, station.name) for node, station in reader.parts.items())

    def _keep(self, names: Collection[str]) -> None:
        """Drop all queries but these, and the stations that none of these needs."""
        self._members = {name: member for name, member in self._members.items() if name in names}
        needed = _find_upstream(self.plan, [root for member in self._members.values() for root in member.roots])
        left = _copy_parts(self.plan, needed, self._members)
        self._parts = {node: name for node, name in self._parts.items() if name in needed}
        self.plan = _join_parts(self.plan, left.streams, (left,))

    def _with_read(self, queries: Iterable[str]) -> set[str]:
        """These queries and all queries that they read."""
        found, ahead = set[str](), list(queries)
        self._known(ahead)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead += self._members[name].reads
        return found

    def _known(self, queries: Iterable[str]) -> None:
        for name in queries:
            if name not in self._members:
                raise PlanError(f"no query {name!r}{existing(name, self._members)}", file=self.plan.name)


@dataclass
class _PlanParts:
    """The parts of a plan, for building another."""

    streams: list[Stream]
    stations: list[Station]
    queries: list[Query]


def _copy_parts(plan: Plan, kept: Collection[str] | None = None, queries: Collection[str] | None = None) -> _PlanParts:
    """Copy a plan's stations, or the `kept` ones; a station of a dropped query goes to its first reader's query."""
    whose = {s.name: s.query.name for s in plan.stations if kept is None or s.name in kept}
    for station in reversed(plan.stations):
        if queries is not None and station.name in whose and station.query.name not in queries:
            whose[station.name] = next(whose[reader.name] for reader in station.consumers if reader.name in whose)
    streams = [replace(stream, consumers=[]) for stream in plan.streams]
    copied = {q.name: replace(q, stations=[]) for q in plan.queries if queries is None or q.name in queries}
    made: dict[int, Stream | Station] = {id(old): new for old, new in zip(plan.streams, streams, strict=True)}
    stations: list[Station] = []
    for old in plan.stations:
        if old.name in whose:
            inputs = tuple(made[id(producer)] for producer in old.inputs)
            made[id(old)] = new = Station(old.name, copied[whose[old.name]], old.operator, inputs)
            new.query.stations.append(new)
            stations.append(new)
    return _PlanParts(streams, stations, list(copied.values()))


def _join_parts(plan: Plan, streams: list[Stream], parts: Iterable[_PlanParts]) -> Plan:
    """A plan with the same settings made of these parts, connected to these streams."""
    by_name, stations, queries = {stream.name: stream for stream in streams}, list[Station](), list[Query]()
    for part in parts:
        for station in part.stations:
            station.inputs = tuple(by_name[p.name] if isinstance(p, Stream) else p for p in station.inputs)
        stations += part.stations
        queries += part.queries
    return replace(plan, streams=streams, stations=stations, queries=queries)


def _find_upstream(plan: Plan, roots: Iterable[str]) -> set[str]:
    """These stations and all stations upstream of them."""
    found = set(roots)
    for station in reversed(plan.stations):
        if station.name in found:
            found |= {producer.name for producer in station.inputs if isinstance(producer, Station)}
    return found


def _is_stateless(node: Node) -> bool:
    """Whether a part of a query has no state, so that a later query may share it."""
    if isinstance(node, Select | Project | Apply):
        return _is_stateless(node.of)
    return isinstance(node, StreamScan) or (isinstance(node, AliasedNode) and node.is_append_only)


def _find_read_queries(node: Node | None) -> Iterator[AliasedNode]:
    """The other queries that a query reads."""
    if isinstance(node, AliasedNode):
        yield node
    for part in inputs_of(node) if node is not None else ():
        yield from _find_read_queries(part)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two entries of a plan's table are equal."""
    if isinstance(one, Batch) and isinstance(other, Batch):
        one, other = one.columns, other.columns
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _queries(plan: Plan) -> set[str]:
    return {query.name for query in plan.queries}


def _stations(plan: Plan) -> set[str]:
    return {station.name for station in plan.stations}
