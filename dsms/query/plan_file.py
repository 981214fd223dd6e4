"""Reads a plan file (TOML) and makes a plan of it; errors name their place in the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.config.fields import Field, TableField, check_table, read_at, read_fields
from dsms.config.live import LiveConfig
from dsms.config.qos import Qos
from dsms.config.run import Settings
from dsms.engine.shedding import dependent_queries, exclusive_stations
from dsms.errors import PlanError, existing
from dsms.plan.graph import Plan, Stream
from dsms.policies.adaptive.settings import Tuning
from dsms.query.query_reader import QueryReader
from dsms.query.stream_reader import read_relation, read_stream, set_arrivals_for_utilisation

if TYPE_CHECKING:
    from dsms.query.compile import CompileContext

TABLES: dict[str, Field[Any]] = {
    name: TableField() for name in ("streams", "queries", "relations", "functions", "run", "qos", "adaptive", "live")
}


def read_plan(path: str | Path) -> Plan:
    """Read a plan file."""
    path = Path(path)
    return plan_from(read_table(path), folder=path.parent, file=str(path))


def read_table(path: Path) -> dict[str, Any]:
    """Parse a plan file, without checking its tables."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise PlanError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise PlanError(f"is not UTF-8 text: {error.reason} at byte {error.start}", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"is not TOML: {error}", file=str(path)) from None


def plan_from(table: Mapping[str, Any], *, folder: Path = Path(), file: str = "") -> Plan:
    """Make a plan of tables like a plan file's; in Python, a `function` may be the function itself."""
    return compile_plan(table, folder, file)[0]


def compile_plan(table: Mapping[str, Any], folder: Path, file: str) -> tuple[Plan, QueryReader]:
    """Make a plan; return also the reader of its queries, which resolves names when queries are added later."""
    try:
        return _compile_plan(table, folder, file)
    except PlanError as error:
        raise error.within("", file) from None


def _compile_plan(table: Mapping[str, Any], folder: Path, file: str) -> tuple[Plan, QueryReader]:
    tables = read_fields(table, TABLES)
    settings = read_at("run", Settings.read, tables.get("run", {}))
    qos = read_at("qos", Qos.read, tables["qos"]) if "qos" in tables else None
    adaptive = read_at("adaptive", Tuning.read, tables.get("adaptive", {}))
    live = read_at("live", LiveConfig.read, tables.get("live", {}))
    streams = {name: read_stream(name, stream, folder) for name, stream in tables.get("streams", {}).items()}
    if not streams:
        raise PlanError("there is no stream: a plan needs at least one [streams.NAME]", "streams")
    reader = QueryReader(streams, settings, folder)
    reader.read(table)
    if reader.written:
        reader.write(read_compile_context(table, streams, folder))
    plan = Plan(list(streams.values()), reader.stations(), reader.queries, settings, file, qos, adaptive, folder, live)
    set_arrivals_for_utilisation(plan, table["streams"], folder)
    check_plan(plan)
    return plan, reader


def read_compile_context(table: Mapping[str, Any], streams: Mapping[str, Stream], folder: Path) -> CompileContext:
    """Load the relations and functions that CQL queries may refer to."""
    from dsms.query import compile as cql  # sqlglot loads slowly: only for plans that use it

    tables = check_table(table.get("relations", {}), "relations")
    relations = {name: read_relation(name, relation, folder) for name, relation in tables.items()}
    functions = check_table(table.get("functions", {}), "functions")
    loaded = read_at("functions", partial(cql.load_functions, folder=folder), functions)
    return cql.CompileContext(streams, relations, loaded, folder)


def check_plan(plan: Plan) -> None:
    """Check what depends on several tables of a plan."""
    _check_costs_of_arrivals(plan)
    _check_sizes(plan)
    _check_shed(plan)


def _check_shed(plan: Plan) -> None:
    """Refuse to shed fractional tuples, or rows that other queries need."""
    for query in (query for query in plan.queries if query.shed is not None):
        if plan.settings.fractional:
            raise PlanError("fractional tuples cannot be shed: only individual ones can", f"queries.{query.name}.shed")
        if not exclusive_stations(plan, {query.name}):
            readers = [n for n in dependent_queries(plan, [s.name for s in query.stations]) if n != query.name]
            raise PlanError(
                f"query {query.name!r} cannot shed: {readers} read the results of all its operators",
                f"queries.{query.name}.shed",
            )


def _check_sizes(plan: Plan) -> None:
    """Refuse an operator that reads fractional tuples of several sizes and declares none itself."""
    for station in plan.stations:
        sizes = {producer.size for producer in station.inputs}
        if plan.settings.fractional and len(sizes) > 1 and station.operator.size is None:
            raise PlanError(
                f"operator {station.name!r} reads fractional tuples of sizes {sorted(sizes)}: give it a `size`",
                f"queries.{station.query.name}",
            )


def _check_costs_of_arrivals(plan: Plan) -> None:
    """Refuse arrivals with costs for an operator that does not exist."""
    names = [station.name for station in plan.stations]
    for stream in plan.streams:
        for column in stream.arrivals(0).carries if stream.arrivals else ():
            if plan.settings.fractional:
                raise PlanError(
                    "arrivals with costs or sizes need individual tuples: fractional ones are all alike",
                    f"streams.{stream.name}",
                )
            kind, _, operator = column.partition(".")
            if kind == "cost" and operator and operator not in names:
                where = f"streams.{stream.name}.arrivals.{column}"
                raise PlanError(f"costs for {operator!r}: no such operator{existing(operator, names)}", where)
