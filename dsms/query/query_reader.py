"""Reads the `[queries.NAME]` tables of a plan file, makes stations of operators and resolves their inputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.config.fields import (
    AnyField,
    ChoiceField,
    Field,
    IntegerField,
    NamesField,
    NumberField,
    OptionalField,
    check_name,
    check_table,
    read_at,
    read_fields,
)
from dsms.config.run import Settings
from dsms.errors import PlanError, existing
from dsms.operators import AbstractOperator, FunctionOperator, Operator
from dsms.operators.base import DEFAULT_ROW_COST_S
from dsms.operators.batch_function import load_function
from dsms.operators.reorder import ReorderOperator
from dsms.plan.graph import Query, SheddingRule, Station, Stream

if TYPE_CHECKING:
    from dsms.algebra import Node
    from dsms.query.compile import CompileContext
    from dsms.query.planner import ExistingQueries

SHED_STRATEGIES = ("oldest", "random")
QUERY_FIELDS: dict[str, Field[Any]] = {
    "from": NamesField(),
    "operators": AnyField(),
    "weight": NumberField(above=0),
    "cql": AnyField(),  # a text, or a query made in Python
    "sink": AnyField(),
    "shed": OptionalField(ChoiceField(SHED_STRATEGIES)),
    "ceiling": OptionalField(IntegerField(least=1)),
}
OPERATOR_NUMBERS: dict[str, Field[Any]] = {
    "cost": NumberField(least=0),
    "selectivity": NumberField(least=0),
    "startup": NumberField(least=0),
    "take": NumberField(above=0),
    "size": NumberField(above=0),
}
OPERATOR_FIELDS: dict[str, Field[Any]] = {
    "name": AnyField(),
    "inputs": NamesField(),
    "function": AnyField(),  # "module:name", or the function itself
    **OPERATOR_NUMBERS,
}


def _make_shedding_rule(query: Mapping[str, Any], place: str) -> SheddingRule | None:
    """Which rows a query drops, and from how many on; None: it drops none."""
    if query.get("shed") is None and query.get("ceiling") is None:
        return None
    for key in ("shed", "ceiling"):
        if query.get(key) is None:
            raise PlanError("missing: `shed` and `ceiling` need each other", f"{place}.{key}")
    return SheddingRule(query["shed"], query["ceiling"])


class QueryReader:
    """Reads queries one after the other; inputs are resolved once all names are known.

    Operators of queries that are added to existing ones are called QUERY.NAME, since short names may be taken.
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        settings: Settings,
        folder: Path,
        existing_queries: ExistingQueries | None = None,
    ) -> None:
        self._streams, self._settings, self._folder = streams, settings, folder
        self._is_addition = existing_queries is not None
        there = () if existing_queries is None else existing_queries.stations
        self._existing = {f"{s.query.name}.{s.name}": s for s in there} | {s.name: s for s in there}
        self._inputs: list[tuple[Station, list[str], str]] = []  # names that a station reads, and their place
        self._by_full_name: dict[str, Station] = {}  # QUERY.OPERATOR
        self._by_short_name: dict[str, list[Station]] = {}
        self._froms: list[tuple[Query, str, str]] = []  # names in a query's `from`, and their place
        # By stream with timestamps: the station that puts its rows in order.
        self._reordered = {s.inputs[0].name: s for s in there if isinstance(s.operator, ReorderOperator)}
        # By CQL query: the station that puts out its results.
        self.output_stations: Mapping[str, Station] = (
            {} if existing_queries is None else existing_queries.output_stations
        )
        # By what they compute: the stations of CQL queries.
        self.parts: Mapping[Node, Station] = {} if existing_queries is None else existing_queries.parts
        self.context: CompileContext | None = None  # what CQL queries may refer to
        self.reads: dict[str, set[str]] = {}  # by query made of operators: the other queries that it reads by name
        self.written: dict[str, tuple[Query, Any]] = {}  # CQL queries, with their text
        self.queries: list[Query] = []

    def read(self, table: Mapping[str, Any]) -> None:
        """Read the queries of tables like a plan file's."""
        queries = check_table(table.get("queries", {}), "queries")
        if not queries:
            raise PlanError("there is no query: a plan needs at least one [queries.NAME]", "queries")
        for name, query in queries.items():
            self.query(name, check_table(query, f"queries.{name}"))

    def query(self, name: str, table: Mapping[str, Any]) -> None:
        """Read one query: CQL, or a list of operators."""
        place = f"queries.{name}"
        check_name(name, place)
        given = read_fields(table, QUERY_FIELDS, place)
        query = Query(name, given.get("weight", 1.0), sink=given.get("sink"), shed=_make_shedding_rule(given, place))
        if "cql" not in given:
            self.queries.append(query)
            self._read_operators(query, given, place)
            return
        if extra := sorted({"from", "operators"} & given.keys()):
            raise PlanError(f"{extra[0]!r} beside `cql`: a query is either CQL or a list of operators", place)
        if self._settings.fractional:
            raise PlanError("fractional tuples have no columns: a CQL query needs individual ones", f"{place}.cql")
        self.written[name] = query, given["cql"]
        self.queries.append(query)

    def _read_operators(self, query: Query, given: Mapping[str, Any], place: str) -> None:
        operators = given.get("operators")
        if not isinstance(operators, list | tuple) or not operators:
            raise PlanError(f"{operators!r} is not a list of at least one operator", f"{place}.operators")
        default_inputs, default_place = given.get("from", []), f"{place}.from"
        self._froms += [(query, name, default_place) for name in default_inputs]
        for number, table in enumerate(operators):
            at = f"{place}.operators[{number}]"
            entry = read_fields(table, OPERATOR_FIELDS, at)
            station = self._make_station(query, entry, at)
            inputs = entry.get("inputs", default_inputs)
            if not inputs:
                raise PlanError("no inputs: the query has no `from` and there is no operator before this one", at)
            self._inputs.append((station, inputs, at if "inputs" in entry else default_place))
            default_inputs, default_place = [station.name], at

    def write(self, context: CompileContext) -> None:
        """Compile the CQL queries into stations."""
        from dsms.query import compile as cql  # sqlglot loads slowly: only for plans that use it

        self.context = context
        builder = cql.compile_queries(self.written, context, self._settings)
        self.output_stations, self.parts = builder.output_stations, builder.parts
        self._reordered.update(builder.reordered)
        self._by_full_name.update((station.name, station) for station in builder.built)

    def stations(self) -> list[Station]:
        """Resolve the inputs of all stations and make their names unique."""
        for query, name, place in self._froms:  # a `from` that no operator uses must exist too
            self._find_producer(query.stations[0], name, place)
        for station, inputs, place in self._inputs:
            producers = [self._find_producer(station, name, place) for name in inputs]
            owners = {producer.query.name for producer in producers if isinstance(producer, Station)}
            self.reads.setdefault(station.query.name, set()).update(owners - {station.query.name})
            station.inputs = tuple(self._in_order(station, producer) for producer in producers)
        for namesakes in self._by_short_name.values():
            if self._is_addition or len(namesakes) > 1:
                for station in namesakes:
                    station.name = f"{station.query.name}.{station.name}"
        return list(self._by_full_name.values())

    def _in_order(self, station: Station, producer: Stream | Station) -> Stream | Station:
        """What user code reads: a station orders the rows of a stream with timestamps, and rejects late ones."""
        if (
            isinstance(producer, Station)
            or producer.timestamp is None
            or isinstance(station.operator, AbstractOperator)
        ):
            return producer
        if producer.name not in self._reordered:
            on_error = self._settings.on_error
            arrange = ReorderOperator(column=producer.timestamp, late=producer.late, on_error=on_error)
            reordered = Station(f"{station.query.name}.arrange-{producer.name}", station.query, arrange, (producer,))
            station.query.stations.append(reordered)
            self._by_full_name[reordered.name] = self._reordered[producer.name] = reordered
        return self._reordered[producer.name]

    def _make_station(self, query: Query, entry: Mapping[str, Any], place: str) -> Station:
        name = entry.get("name")
        if not isinstance(name, str):
            raise PlanError(
                "missing: every operator needs a name, a string that no other operator has", f"{place}.name"
            )
        check_name(name, f"{place}.name")
        full = f"{query.name}.{name}"
        if full in self._by_full_name:
            raise PlanError(f"two operators of query {query.name!r} are called {name!r}", f"{place}.name")
        if full in self._existing:
            raise PlanError(f"operator {full!r} exists already: other queries still read it", f"{place}.name")
        if name in self._streams:
            raise PlanError(f"operator {name!r} has the name of a stream: inputs could mean either", f"{place}.name")
        station = Station(name, query, read_at(place, partial(self._make_operator, full), entry))
        query.stations.append(station)
        self._by_full_name[full] = station
        self._by_short_name.setdefault(name, []).append(station)
        return station

    def _make_operator(self, name: str, entry: Mapping[str, Any]) -> Operator:
        numbers: dict[str, Any] = {key: entry[key] for key in OPERATOR_NUMBERS if key in entry}
        take = numbers.get("take", 1.0)
        if not self._settings.fractional and take != int(take):
            raise PlanError(f"{take} is not a whole number: only fractional tuples can be taken in part", "take")
        if "function" not in entry:
            if "cost" not in numbers and "startup" not in numbers:
                raise PlanError(
                    "missing: an operator needs a cost, the time for one input tuple (or a `startup`)", "cost"
                )
            return AbstractOperator(**numbers, name=name)
        function = entry["function"]
        numbers.setdefault("cost", DEFAULT_ROW_COST_S)
        return FunctionOperator(
            **numbers, function=function if callable(function) else load_function(str(function), self._folder)
        )

    def _find_producer(self, station: Station, name: str, place: str) -> Stream | Station:
        """What `name` means to this station: a stream, an operator of its own query, or another query's operator."""
        mine = f"{station.query.name}.{name}"
        if name in self._streams:
            return self._streams[name]
        if name in self.output_stations:
            return self.output_stations[name]
        if mine in self._by_full_name or name in self._by_full_name:
            return self._by_full_name.get(mine) or self._by_full_name[name]
        namesakes = self._by_short_name.get(name, [])
        if len(namesakes) == 1:
            return namesakes[0]
        if not namesakes and name in self._existing:
            return self._existing[name]
        if namesakes:
            names = [f"{s.query.name}.{s.name}" for s in namesakes]
            raise PlanError(f"operator {station.name!r} reads from {name!r}, which may be any of {names}", place)
        known = [*self._streams, *(s.name for s in station.query.stations if s is not station)]
        known += [full for full, s in self._by_full_name.items() if s.query is not station.query]
        known += self._existing
        raise PlanError(
            f"operator {station.name!r} reads from {name!r}: no such stream or operator{existing(name, known)}", place
        )
