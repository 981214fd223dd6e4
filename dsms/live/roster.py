"""The queries of a live plan as they come and go: what stays keeps its stations, their names and their shape.

A query that comes later reads only what comes from then on. So it shares a station only where that keeps nothing of
what came before: the way in of a stream, filters and projections on it. What remembers rows it has for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dsms.algebra import Apply, Named, Node, Project, Select, Stream, inputs_of
from dsms.batch import Batch
from dsms.errors import PlanError, existing
from dsms.live.division import together
from dsms.plan import Plan, Query, Station
from dsms.plan import Stream as Source
from dsms.planfile import Reader, check, planned, surroundings
from dsms.planner import Standing
from dsms.reading import table_of
from dsms.streamfile import stream_from

COMING = ("streams", "relations", "functions", "queries")  # the tables that may come to those there are


@dataclass(frozen=True)
class _Member:
    """What is known of a query beside its stations."""

    entry: Any  # as the table has it
    node: Node | None
    roots: tuple[str, ...]  # the stations that all of it is above
    reads: frozenset[str]  # other queries, by name


class Roster:
    """Some queries and their plan; never changed: a change makes another, with a plan of its own."""

    plan: Plan

    def __init__(
        self,
        table: Mapping[str, Any],
        folder: Path = Path(),
        file: str = "",
        queries: Collection[str] | None = None,
    ) -> None:
        self.plan, reader = planned(table, folder, file)
        around = reader.around or surroundings(table, {}, folder)
        self._rest = {key: value for key, value in table.items() if key not in COMING}
        self._tables: dict[str, dict[str, Any]] = {kind: dict(table.get(kind, {})) for kind in COMING[:3]}
        self._relations, self._functions = dict(around.relations), dict(around.functions)
        self._members: dict[str, _Member] = {}
        self._parts: dict[Node, str] = {}
        self._enter(reader, table)
        if queries is not None:
            self._keep(self._with_read(queries))

    @property
    def table(self) -> dict[str, Any]:
        """A table like a plan file's for the queries there are now."""
        tables = {kind: dict(entries) for kind, entries in self._tables.items() if entries}
        return {**self._rest, **tables, "queries": {name: member.entry for name, member in self._members.items()}}

    def adding(self, table: Mapping[str, Any], folder: Path | None = None, file: str = "") -> Roster:
        """With the queries of this table too; what its names of files are relative to, if not to the plan's folder."""
        after = self._copy()
        try:
            after._add(table, self.plan.folder if folder is None else folder)
        except PlanError as error:
            raise error.within("", file) from None
        return after

    def removing(self, query: str) -> Roster:
        """Without this query."""
        self._known([query])
        if readers := [name for name, member in self._members.items() if query in member.reads]:
            raise PlanError(f"query {query!r} cannot go: {readers} read it", file=self.plan.name)
        after = self._copy()
        after._keep({name for name in self._members if name != query})
        return after

    def leaving(self, queries: Collection[str]) -> tuple[Roster, Roster]:
        """Without these queries and those that must go with them; and these alone, for another domain to adopt."""
        self._known(queries)
        going = {name for query in queries for name in together(self.plan, query)}
        stay, gone = self._copy(), self._copy()
        stay._keep(self._members.keys() - going)
        gone._keep(going)
        return stay, gone

    def adopting(self, moved: Roster) -> Roster:
        """With the queries of another roster too, their stations as they are there."""
        theirs, after = moved.plan, self._copy()
        if theirs.settings != self.plan.settings:
            raise PlanError(f"queries {list(moved._members)} ran with other settings", "run", self.plan.name)
        for kind, plan_names in (("query", _queries), ("operator", _stations)):
            if taken := sorted(plan_names(self.plan) & plan_names(theirs)):
                raise PlanError(f"there is another {kind} {taken[0]!r} already", file=self.plan.name)
        fresh = after._announce(moved._tables)
        streams = [replace(s, consumers=[]) for s in theirs.streams if s.name in fresh["streams"]]
        mine, coming = _copied(self.plan), _copied(theirs)
        after._relations.update(moved._relations)
        after._functions.update(moved._functions)
        after._members.update(moved._members)
        after._parts = {**moved._parts, **self._parts}
        after.plan = _joined(self.plan, [*mine.streams, *streams], (mine, coming))
        return after

    def __getstate__(self) -> dict[str, Any]:
        # Stations hold each other: a long chain of them would be too deep to be pickled.
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

    def _copy(self) -> Roster:
        after = object.__new__(Roster)
        vars(after).update(vars(self))
        after._tables = {kind: dict(entries) for kind, entries in self._tables.items()}
        after._relations, after._functions = dict(self._relations), dict(self._functions)
        after._members, after._parts = dict(self._members), dict(self._parts)
        return after

    def _add(self, table: Mapping[str, Any], folder: Path) -> None:
        for key in table:
            if key not in COMING:
                raise PlanError(f"[{key}] cannot come to a plan that runs: there may be {list(COMING)}", key)
        for name in table_of(table.get("queries", {}), "queries"):
            if name in self._members:
                raise PlanError(f"there is a query {name!r} already", f"queries.{name}")
        fresh = self._announce({kind: table_of(table.get(kind, {}), kind) for kind in COMING[:3]})
        there, settings = _copied(self.plan), self.plan.settings
        there.streams += [stream_from(name, given, folder) for name, given in fresh["streams"].items()]
        standing, streams = self._standing(there), {stream.name: stream for stream in there.streams}
        around = surroundings(fresh, streams, folder)
        self._relations.update(around.relations)
        self._functions.update(around.functions)
        reader = Reader(streams, settings, folder, standing)
        reader.read(table)
        around = replace(around, relations=self._relations, functions=self._functions, standing=standing)
        if reader.written:
            reader.write(around)
        came = reader.stations()
        self._check_reading(reader.queries)
        coming = _Copies([], came, reader.queries)
        self.plan = _joined(self.plan, there.streams, (there, coming))
        check(self.plan)
        self._enter(reader, table)

    def _announce(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Streams, relations and functions come: those that are new; one that there is already must be the same."""
        fresh: dict[str, dict[str, Any]] = {}
        for kind, entries in tables.items():
            known = self._tables[kind]
            fresh[kind] = {name: entry for name, entry in entries.items() if name not in known}
            for name, entry in entries.items():
                if name in known and not _same(entry, known[name]):
                    raise PlanError(f"there is another {name!r} already: {known[name]!r}", f"{kind}.{name}")
            known.update(fresh[kind])
        if clash := sorted(fresh["streams"].keys() & (_stations(self.plan) | _queries(self.plan))):
            what = "a query" if clash[0] in self._members else "an operator"
            raise PlanError(f"there is {what} {clash[0]!r} too: inputs could mean either", f"streams.{clash[0]}")
        return fresh

    def _standing(self, there: _Copies) -> Standing:
        """What queries that come may read and share."""
        by_name = {station.name: station for station in there.stations}
        written = {name: member for name, member in self._members.items() if member.node is not None}
        return Standing(
            {name: member.node for name, member in written.items() if member.node is not None},
            {name: by_name[member.roots[0]] for name, member in written.items()},
            {node: by_name[name] for node, name in self._parts.items() if _forgets(node)},
            there.stations,
        )

    def _check_reading(self, queries: Iterable[Query]) -> None:
        """Of a relation, one that comes later would hear the end of rows whose beginning it has not heard."""
        for query in queries:
            for part in _named(query.node):
                if part.name in self._members and not part.appends:
                    raise PlanError(
                        f"it reads {part.name!r}, which runs already and takes rows back that this query would not "
                        f"have seen: let the two come together, or {part.name!r} be an ISTREAM",
                        f"queries.{query.name}.cql",
                    )

    def _enter(self, reader: Reader, table: Mapping[str, Any]) -> None:
        """Note what there is to know of the queries that have come."""
        for query in reader.queries:
            written = query.name in reader.written
            roots = [reader.tops[query.name]] if written else query.stations
            reads = {part.name for part in _named(query.node)} | reader.reads.get(query.name, set())
            names = tuple(station.name for station in roots)
            self._members[query.name] = _Member(table["queries"][query.name], query.node, names, frozenset(reads))
        self._parts.update((node, station.name) for node, station in reader.parts.items())

    def _keep(self, names: Collection[str]) -> None:
        """Let go of all queries but these, and of the stations that none of these needs."""
        self._members = {name: member for name, member in self._members.items() if name in names}
        needed = _above(self.plan, [root for member in self._members.values() for root in member.roots])
        left = _copied(self.plan, needed, self._members)
        self._parts = {node: name for node, name in self._parts.items() if name in needed}
        self.plan = _joined(self.plan, left.streams, (left,))

    def _with_read(self, queries: Iterable[str]) -> set[str]:
        """These queries and all that they read by name."""
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
class _Copies:
    """The pieces of a plan, for another one."""

    streams: list[Source]
    stations: list[Station]
    queries: list[Query]


def _copied(plan: Plan, kept: Collection[str] | None = None, queries: Collection[str] | None = None) -> _Copies:
    """Stations, or some of them, as new objects with their operators; each in its query, or in its first reader's."""
    whose = {s.name: s.query.name for s in plan.stations if kept is None or s.name in kept}
    for station in reversed(plan.stations):
        if queries is not None and station.name in whose and station.query.name not in queries:
            whose[station.name] = next(whose[reader.name] for reader in station.consumers if reader.name in whose)
    streams = [replace(stream, consumers=[]) for stream in plan.streams]
    copied = {q.name: replace(q, stations=[]) for q in plan.queries if queries is None or q.name in queries}
    made: dict[int, Source | Station] = {id(old): new for old, new in zip(plan.streams, streams, strict=True)}
    stations: list[Station] = []
    for old in plan.stations:
        if old.name in whose:
            inputs = tuple(made[id(producer)] for producer in old.inputs)
            made[id(old)] = new = Station(old.name, copied[whose[old.name]], old.operator, inputs)
            new.query.stations.append(new)
            stations.append(new)
    return _Copies(streams, stations, list(copied.values()))


def _joined(plan: Plan, streams: list[Source], parts: Iterable[_Copies]) -> Plan:
    """A plan like this one of other pieces, all of which read these streams."""
    by_name, stations, queries = {stream.name: stream for stream in streams}, list[Station](), list[Query]()
    for part in parts:
        for station in part.stations:
            station.inputs = tuple(by_name[p.name] if isinstance(p, Source) else p for p in station.inputs)
        stations += part.stations
        queries += part.queries
    return replace(plan, streams=streams, stations=stations, queries=queries)


def _above(plan: Plan, roots: Iterable[str]) -> set[str]:
    """These stations and all that they read, directly or not."""
    found = set(roots)
    for station in reversed(plan.stations):
        if station.name in found:
            found |= {producer.name for producer in station.inputs if isinstance(producer, Station)}
    return found


def _forgets(node: Node) -> bool:
    """Whether a part keeps nothing of what came before, so that one who comes later may read it."""
    if isinstance(node, Select | Project | Apply):
        return _forgets(node.of)
    return isinstance(node, Stream) or (isinstance(node, Named) and node.appends)


def _named(node: Node | None) -> Iterator[Named]:
    """The other queries that one reads."""
    if isinstance(node, Named):
        yield node
    for part in inputs_of(node) if node is not None else ():
        yield from _named(part)


def _same(one: Any, other: Any) -> bool:
    """Whether two entries of a table say the same."""
    if isinstance(one, Batch) and isinstance(other, Batch):
        one, other = one.columns, other.columns
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _queries(plan: Plan) -> set[str]:
    return {query.name for query in plan.queries}


def _stations(plan: Plan) -> set[str]:
    return {station.name for station in plan.stations}
