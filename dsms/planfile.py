"""Plan files: TOML in, a plan out; whatever is wrong is refused here, with its place in the file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.algebra import Node
from dsms.errors import PlanError, existing
from dsms.live.setup import Setup
from dsms.operators import Abstract, Function, Operator
from dsms.operators.arrange import Arrange
from dsms.operators.base import ROW_COST
from dsms.operators.function import function_named
from dsms.plan import Plan, Query, Shed, Station, Stream
from dsms.qos import Qos
from dsms.reading import named, names, number, only, placed, table_of
from dsms.selection.tuning import Tuning
from dsms.settings import Settings
from dsms.shedding import dependents, own_stations
from dsms.streamfile import relation_from, stream_from, use_work

if TYPE_CHECKING:
    from dsms.planner import Standing
    from dsms.written import Surroundings

TABLES = ("streams", "queries", "relations", "functions", "run", "qos", "adaptive", "live")
QUERY_KEYS = ("from", "operators", "weight", "cql", "sink", "shed", "ceiling")
WAYS = ("oldest", "random")
NUMBERS = ("cost", "selectivity", "startup", "take", "size")
OPERATOR_KEYS = ("name", "inputs", "function", *NUMBERS)


def read_plan(path: str | Path) -> Plan:
    """The plan in this file."""
    path = Path(path)
    return plan_from(read_table(path), folder=path.parent, file=str(path))


def read_table(path: Path) -> dict[str, Any]:
    """What stands in this file, before anything is made of it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise PlanError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise PlanError(f"is not UTF-8 text: {error.reason} at byte {error.start}", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"is not TOML: {error}", file=str(path)) from None


def plan_from(table: Mapping[str, Any], *, folder: Path = Path(), file: str = "") -> Plan:
    """The plan that a table like a plan file's describes; in Python, a `function` may be the function itself."""
    return planned(table, folder, file)[0]


def planned(table: Mapping[str, Any], folder: Path, file: str) -> tuple[Plan, Reader]:
    """The plan, and who read its queries: for those who will want more of them read."""
    try:
        return _planned(table, folder, file)
    except PlanError as error:
        raise error.within("", file) from None


def _planned(table: Mapping[str, Any], folder: Path, file: str) -> tuple[Plan, Reader]:
    only(table, TABLES, "")
    settings = placed("run", Settings.read, table_of(table.get("run", {}), "run"))
    qos = placed("qos", Qos.read, table_of(table["qos"], "qos")) if "qos" in table else None
    adaptive = placed("adaptive", Tuning.read, table_of(table.get("adaptive", {}), "adaptive"))
    live = placed("live", Setup.read, table_of(table.get("live", {}), "live"))
    streams = {n: stream_from(n, t, folder) for n, t in table_of(table.get("streams", {}), "streams").items()}
    if not streams:
        raise PlanError("there is no stream: a plan needs at least one [streams.NAME]", "streams")
    reader = Reader(streams, settings, folder)
    reader.read(table)
    if reader.written:
        reader.write(surroundings(table, streams, folder))
    plan = Plan(list(streams.values()), reader.stations(), reader.queries, settings, file, qos, adaptive, folder, live)
    use_work(plan, table["streams"], folder)
    check(plan)
    return plan, reader


def surroundings(table: Mapping[str, Any], streams: Mapping[str, Stream], folder: Path) -> Surroundings:
    """What queries that are written down may refer to."""
    from dsms import written

    relations = {n: relation_from(n, t, folder) for n, t in table_of(table.get("relations", {}), "relations").items()}
    functions = table_of(table.get("functions", {}), "functions")
    loaded = placed("functions", partial(written.functions_from, folder=folder), functions)
    return written.Surroundings(streams, relations, loaded, folder)


def check(plan: Plan) -> None:
    """What can only be said of a plan as a whole."""
    _check_carried(plan)
    _check_sizes(plan)
    _check_shed(plan)


def _check_shed(plan: Plan) -> None:
    """Rows can be given up where nobody else needs them, and where they are whole."""
    for query in (query for query in plan.queries if query.shed is not None):
        if plan.settings.fractional:
            raise PlanError("fractional tuples cannot be shed: there are no whole ones", f"queries.{query.name}.shed")
        if not own_stations(plan, {query.name}):
            readers = [n for n in dependents(plan, [s.name for s in query.stations]) if n != query.name]
            raise PlanError(
                f"query {query.name!r} has no operator for itself to shed before: {readers} need all it does",
                f"queries.{query.name}.shed",
            )


def _check_sizes(plan: Plan) -> None:
    """A fractional tuple has no size of its own to keep behind a union."""
    for station in plan.stations:
        sizes = {producer.size for producer in station.inputs}
        if plan.settings.fractional and len(sizes) > 1 and station.operator.size is None:
            raise PlanError(
                f"operator {station.name!r} reads fractional tuples of sizes {sorted(sizes)}: give it a `size`",
                f"queries.{station.query.name}",
            )


def _check_carried(plan: Plan) -> None:
    """Costs that a stream carries for one operator must mean one that there is."""
    names = [station.name for station in plan.stations]
    for stream in plan.streams:
        for column in stream.arrivals(0).carries if stream.arrivals else ():
            if plan.settings.fractional:
                raise PlanError(
                    "fractional tuples are all alike: they carry no costs and sizes", f"streams.{stream.name}"
                )
            kind, _, operator = column.partition(".")
            if kind == "cost" and operator and operator not in names:
                where = f"streams.{stream.name}.arrivals.{column}"
                raise PlanError(f"costs for {operator!r}: no such operator{existing(operator, names)}", where)


def _shed(table: Mapping[str, Any], place: str) -> Shed | None:
    """How a query gives up rows, if it does."""
    way, ceiling = table.get("shed"), table.get("ceiling")
    if way is None and ceiling is None:
        return None
    if way not in WAYS:
        raise PlanError(f"{way!r} is not one of {list(WAYS)}", f"{place}.shed")
    if not isinstance(ceiling, int) or isinstance(ceiling, bool) or ceiling < 1:
        raise PlanError(f"{ceiling!r} is not a number of rows from 1", f"{place}.ceiling")
    return Shed(way, ceiling)


class Reader:
    """Reads queries one after the other; inputs are resolved once all names are known.

    Operators of queries that come to `standing` ones have their query's name before their own, as theirs are taken.
    """

    def __init__(
        self, streams: Mapping[str, Stream], settings: Settings, folder: Path, standing: Standing | None = None
    ) -> None:
        self._streams, self._settings, self._folder, self._later = streams, settings, folder, standing is not None
        there = () if standing is None else standing.stations
        self._there = {f"{s.query.name}.{s.name}": s for s in there} | {s.name: s for s in there}
        self._read: list[tuple[Station, list[str], str]] = []  # with what it reads, by name, and where that is said
        self._full: dict[str, Station] = {}  # by query.operator
        self._short: dict[str, list[Station]] = {}  # by the operator's own name
        self._froms: list[tuple[Query, str, str]] = []
        # By stream with timestamps: where its rows come in order.
        self._arranged = {s.inputs[0].name: s for s in there if isinstance(s.operator, Arrange)}
        self.tops: Mapping[str, Station] = {} if standing is None else standing.tops  # of queries written down: the end
        self.parts: Mapping[Node, Station] = {} if standing is None else standing.parts  # by what they mean
        self.around: Surroundings | None = None  # what is written refers to
        self.reads: dict[str, set[str]] = {}  # by query made of operators: the others it reads by name
        self.written: dict[str, tuple[Query, Any]] = {}  # with what is written
        self.queries: list[Query] = []

    def read(self, table: Mapping[str, Any]) -> None:
        """Read the queries of a table like a plan file's."""
        queries = table_of(table.get("queries", {}), "queries")
        if not queries:
            raise PlanError("there is no query: a plan needs at least one [queries.NAME]", "queries")
        for name, query in queries.items():
            self.query(name, table_of(query, f"queries.{name}"))

    def query(self, name: str, table: Mapping[str, Any]) -> None:
        place = f"queries.{name}"
        named(name, place)
        only(table, QUERY_KEYS, place)
        weight = number(table.get("weight", 1.0), f"{place}.weight", positive=True)
        if "cql" in table:
            if extra := sorted({"from", "operators"} & table.keys()):
                raise PlanError(f"{extra[0]!r} beside `cql`: a query is either written or made of operators", place)
            self._write(Query(name, weight, sink=table.get("sink"), shed=_shed(table, place)), table["cql"], place)
            return
        operators = table.get("operators")
        if not isinstance(operators, list | tuple) or not operators:
            raise PlanError(f"{operators!r} given; a list of at least one operator is wanted", f"{place}.operators")
        query = Query(name, weight, sink=table.get("sink"), shed=_shed(table, place))
        self.queries.append(query)
        said = f"{place}.from"
        before = names(table["from"], said) if "from" in table else []
        self._froms += [(query, name, said) for name in before]
        for place_in, given in enumerate(operators):
            at = f"{place}.operators[{place_in}]"
            entry = table_of(given, at)
            only(entry, OPERATOR_KEYS, at)
            station = self._station(query, entry, at)
            inputs = names(entry["inputs"], f"{at}.inputs") if "inputs" in entry else before
            if not inputs:
                raise PlanError("no inputs: the query has no `from` and there is no operator before this one", at)
            self._read.append((station, inputs, at if "inputs" in entry else said))
            before, said = [station.name], at

    def write(self, around: Surroundings) -> None:
        """Plan the queries that are written down."""
        from dsms import written

        self.around = around
        builder = written.built(self.written, around, self._settings)
        self.tops, self.parts = builder.tops, builder.parts
        self._arranged.update(builder.arranged)
        self._full.update((station.name, station) for station in builder.found)

    def _write(self, query: Query, text: Any, place: str) -> None:
        if self._settings.fractional:
            raise PlanError("fractional tuples have no columns: a query on rows needs individual ones", f"{place}.cql")
        self.written[query.name] = query, text
        self.queries.append(query)

    def stations(self) -> list[Station]:
        """All stations, their inputs found and their names made unique."""
        for query, name, place in self._froms:  # one that goes unused must still exist
            self._found(query.stations[0], name, place)
        for station, inputs, place in self._read:
            found = [self._found(station, name, place) for name in inputs]
            owners = {producer.query.name for producer in found if isinstance(producer, Station)}
            self.reads.setdefault(station.query.name, set()).update(owners - {station.query.name})
            station.inputs = tuple(self._in_order(station, producer) for producer in found)
        for alike in self._short.values():
            if self._later or len(alike) > 1:
                for station in alike:
                    station.name = f"{station.query.name}.{station.name}"
        return list(self._full.values())

    def _in_order(self, station: Station, producer: Stream | Station) -> Stream | Station:
        """What user code reads of a stream with timestamps: its rows in their order, late ones set aside."""
        if isinstance(producer, Station) or producer.timestamp is None or isinstance(station.operator, Abstract):
            return producer
        if producer.name not in self._arranged:
            on_error = self._settings.on_error
            arrange = Arrange(column=producer.timestamp, late=producer.late, on_error=on_error)
            arranged = Station(f"{station.query.name}.arrange-{producer.name}", station.query, arrange, (producer,))
            station.query.stations.append(arranged)
            self._full[arranged.name] = self._arranged[producer.name] = arranged
        return self._arranged[producer.name]

    def _station(self, query: Query, entry: Mapping[str, Any], place: str) -> Station:
        name = entry.get("name")
        if not isinstance(name, str):
            raise PlanError("a name is wanted: a text of its own for every operator", f"{place}.name")
        named(name, f"{place}.name")
        full = f"{query.name}.{name}"
        if full in self._full:
            raise PlanError(f"two operators of query {query.name!r} are called {name!r}", f"{place}.name")
        if full in self._there:
            raise PlanError(f"there is an operator {full!r} already: others still read it", f"{place}.name")
        if name in self._streams:
            raise PlanError(f"operator {name!r} has the name of a stream: inputs could mean either", f"{place}.name")
        station = Station(name, query, placed(place, partial(self._operator, full), entry))
        query.stations.append(station)
        self._full[full] = station
        self._short.setdefault(name, []).append(station)
        return station

    def _operator(self, name: str, entry: Mapping[str, Any]) -> Operator:
        figures: dict[str, Any] = {key: number(entry[key], key) for key in NUMBERS if key in entry}
        take = figures.get("take", 1.0)
        if not self._settings.fractional and math.isfinite(take) and take != int(take):
            raise PlanError(f"take is {take}: a whole number of tuples is wanted unless they are fractional", "take")
        if "function" not in entry:
            if "cost" not in figures and "startup" not in figures:
                raise PlanError("no cost: the time for one input tuple is wanted (or a `startup`)", "cost")
            return Abstract(**figures, name=name)
        function = entry["function"]
        figures.setdefault("cost", ROW_COST)
        return Function(
            **figures, function=function if callable(function) else function_named(str(function), self._folder)
        )

    def _found(self, station: Station, name: str, place: str) -> Stream | Station:
        """What `name` means to this station: a stream, an operator of its own query, or another query's operator."""
        mine = f"{station.query.name}.{name}"
        if name in self._streams:
            return self._streams[name]
        if name in self.tops:
            return self.tops[name]
        if mine in self._full or name in self._full:
            return self._full.get(mine) or self._full[name]
        alike = self._short.get(name, [])
        if len(alike) == 1:
            return alike[0]
        if not alike and name in self._there:
            return self._there[name]
        if alike:
            names = [f"{s.query.name}.{s.name}" for s in alike]
            raise PlanError(f"operator {station.name!r} reads from {name!r}, which may be any of {names}", place)
        known = [*self._streams, *(s.name for s in station.query.stations if s is not station)]
        known += [full for full, s in self._full.items() if s.query is not station.query]
        known += self._there
        raise PlanError(
            f"operator {station.name!r} reads from {name!r}: no such stream or operator{existing(name, known)}", place
        )
