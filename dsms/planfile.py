"""Plan files: TOML in, a plan out; whatever is wrong is refused here, with its place in the file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dsms.arrivals import arrivals_from
from dsms.errors import PlanError, existing
from dsms.operators import Abstract, Function, Operator
from dsms.operators.function import function_named
from dsms.plan import Plan, Query, Station, Stream
from dsms.settings import Settings

TABLES = ("streams", "queries", "run")
STREAM_KEYS = ("size", "arrivals")
QUERY_KEYS = ("from", "operators", "weight")
NUMBERS = ("cost", "selectivity", "startup", "take", "size")
OPERATOR_KEYS = ("name", "inputs", "function", *NUMBERS)


def read_plan(path: str | Path) -> Plan:
    """The plan in this file."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise PlanError(f"is not UTF-8 text: {error.reason} at byte {error.start}", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"is not TOML: {error}", file=str(path)) from None
    return plan_from(table, folder=path.parent, file=str(path))


def plan_from(table: Mapping[str, Any], *, folder: Path = Path(), file: str = "") -> Plan:
    """The plan that a table like a plan file's describes; in Python, a `function` may be the function itself."""
    try:
        return _plan(table, folder, file)
    except PlanError as error:
        raise error.within("", file) from None


def _plan(table: Mapping[str, Any], folder: Path, file: str) -> Plan:
    _only(table, TABLES, "")
    settings = _placed("run", Settings.read, _table(table.get("run", {}), "run"))
    streams = {n: _stream(n, t, folder) for n, t in _table(table.get("streams", {}), "streams").items()}
    if not streams:
        raise PlanError("there is no stream: a plan needs at least one [streams.NAME]", "streams")
    queries = _table(table.get("queries", {}), "queries")
    if not queries:
        raise PlanError("there is no query: a plan needs at least one [queries.NAME]", "queries")
    reader = _Reader(streams)
    for name, query in queries.items():
        reader.query(name, _table(query, f"queries.{name}"))
    plan = Plan(list(streams.values()), reader.stations(), reader.queries, settings, file)
    _check_carried(plan)
    return plan


def _check_carried(plan: Plan) -> None:
    """Costs that a stream carries for one operator must mean one that there is."""
    names = [station.name for station in plan.stations]
    for stream in plan.streams:
        for column in stream.arrivals(0).carries if stream.arrivals else ():
            kind, _, operator = column.partition(".")
            if kind == "cost" and operator and operator not in names:
                where = f"streams.{stream.name}.arrivals.{column}"
                raise PlanError(f"costs for {operator!r}: no such operator{existing(operator, names)}", where)


def _stream(name: str, given: Any, folder: Path) -> Stream:
    place = f"streams.{name}"
    table = _table(given, place)
    _named(name, place)
    _only(table, STREAM_KEYS, place)
    size = _number(table.get("size", 1.0), f"{place}.size", positive=True)
    if "arrivals" not in table:
        return Stream(name, size)
    arrivals = partial(_arrivals, _table(table["arrivals"], f"{place}.arrivals"), f"{place}.arrivals", folder)
    arrivals(0)  # what is wrong with it is said when the plan is read, not when it is run
    return Stream(name, size, arrivals)


def _arrivals(table: Mapping[str, Any], place: str, folder: Path, seed: int) -> Any:
    return _placed(place, partial(arrivals_from, seed=seed, folder=folder), table)


class _Reader:
    """Reads queries one after the other; inputs are resolved once all names are known."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._streams = streams
        self._tables: list[tuple[Station, Sequence[str], str]] = []  # with what it reads, by name, and its place
        self.queries: list[Query] = []

    def query(self, name: str, table: Mapping[str, Any]) -> None:
        place = f"queries.{name}"
        _named(name, place)
        _only(table, QUERY_KEYS, place)
        weight = _number(table.get("weight", 1.0), f"{place}.weight", positive=True)
        operators = table.get("operators")
        if not isinstance(operators, list) or not operators:
            raise PlanError("a list of at least one operator is wanted", f"{place}.operators")
        query = Query(name, weight)
        self.queries.append(query)
        before = table.get("from")
        for number, given in enumerate(operators):
            at = f"{place}.operators[{number}]"
            entry = _table(given, at)
            _only(entry, OPERATOR_KEYS, at)
            own = entry.get("name")
            if not isinstance(own, str):
                raise PlanError("a name is wanted: a text of its own for every operator", f"{at}.name")
            self._unused(query, own, at)
            inputs = _inputs(entry, before, at)
            station = Station(own, query, _placed(at, partial(_operator, f"{name}.{own}"), entry))
            query.stations.append(station)
            self._tables.append((station, inputs, at))
            before = own

    def stations(self) -> list[Station]:
        """All stations, their inputs found and their names made unique."""
        for station, inputs, place in self._tables:
            station.inputs = tuple(self._found(station, name, place) for name in inputs)
        short = [station.name for station, _, _ in self._tables]
        for station, _, _ in self._tables:
            if short.count(station.name) > 1:
                station.name = f"{station.query.name}.{station.name}"
        return [station for station, _, _ in self._tables]

    def _unused(self, query: Query, name: str, place: str) -> None:
        _named(name, f"{place}.name")
        if name in (station.name for station in query.stations):
            raise PlanError(f"two operators of query {query.name!r} are called {name!r}", f"{place}.name")
        if name in self._streams:
            raise PlanError(f"operator {name!r} has the name of a stream: inputs could mean either", f"{place}.name")

    def _found(self, station: Station, name: str, place: str) -> Stream | Station:
        """What `name` means to this station: an operator of its own query, a stream, or another query's operator."""
        if name in self._streams:
            return self._streams[name]
        everything = [s for s, _, _ in self._tables]
        mine = [s for s in station.query.stations if s.name == name]
        full = [s for s in everything if f"{s.query.name}.{s.name}" == name]
        short = [s for s in everything if s.name == name]
        for found in (mine, full, short):
            if len(found) == 1:
                return found[0]
        if short:
            names = [f"{s.query.name}.{s.name}" for s in short]
            raise PlanError(f"operator {station.name!r} reads from {name!r}, which may be any of {names}", place)
        known = [*self._streams, *(s.name for s in station.query.stations if s is not station)]
        known += [f"{s.query.name}.{s.name}" for s in everything if s.query is not station.query]
        raise PlanError(
            f"operator {station.name!r} reads from {name!r}: no such stream or operator{existing(name, known)}", place
        )


def _inputs(entry: Mapping[str, Any], before: Any, place: str) -> list[str]:
    given = entry.get("inputs", before)
    inputs = [given] if isinstance(given, str) else given
    if inputs is None:
        raise PlanError("no inputs: the query has no `from` and there is no operator before this one", place)
    if not isinstance(inputs, list) or not inputs or not all(isinstance(name, str) for name in inputs):
        raise PlanError(f"{given!r} is not a list of names of streams or operators", f"{place}.inputs")
    if len(set(inputs)) < len(inputs):
        raise PlanError(f"{inputs} names an input twice", f"{place}.inputs")
    return inputs


def _operator(name: str, entry: Mapping[str, Any]) -> Operator:
    figures: dict[str, Any] = {key: _number(entry[key], key) for key in NUMBERS if key in entry}
    if "function" not in entry:
        if "cost" not in figures and "startup" not in figures:
            raise PlanError("no cost: the time for one input tuple is wanted (or a `startup`)", "cost")
        return Abstract(**figures, name=name)
    function = entry["function"]
    figures.setdefault("cost", 1e-6)  # until it is measured
    return Function(**figures, function=function if callable(function) else function_named(str(function)))


def _placed(place: str, read: Any, table: Mapping[str, Any]) -> Any:
    try:
        return read(table)
    except PlanError as error:
        raise error.within(place) from None


def _table(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PlanError(f"{value!r} is not a table", place)
    return value


def _only(table: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
    for key in table:
        if key not in keys:
            raise PlanError(f"no key {key!r} here{existing(key, keys)}", place)


def _named(name: str, place: str) -> None:
    if not name or "." in name or any(c.isspace() or c in ",:=[]" for c in name):
        raise PlanError(f"{name!r} cannot be a name: no spaces and none of . , : = [ ]", place)


def _number(value: Any, place: str, positive: bool = False) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise PlanError(f"{value!r} is not a number", place)
    if positive and not (math.isfinite(value) and value > 0):
        raise PlanError(f"{value} is not a positive number", place)
    return float(value)
