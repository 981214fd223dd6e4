"""Streams and stored relations as a plan file describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dsms.arrivals import Arrivals, arrivals_from
from dsms.batch import Batch
from dsms.demand import work_per_tuple
from dsms.durations import microseconds
from dsms.errors import PlanError, existing
from dsms.plan import Plan, Stream
from dsms.reading import named, number, only, placed, table_of
from dsms.schema import Schema

STREAM_KEYS = ("size", "arrivals", "schema", "timestamp", "late", "source", "values")
RELATION_KEYS = ("schema", "source")


def stream_from(name: str, given: Any, folder: Path) -> Stream:
    place = f"streams.{name}"
    table = table_of(given, place)
    named(name, place)
    only(table, STREAM_KEYS, place)
    stream = Stream(name, number(table.get("size", 1.0), f"{place}.size", positive=True))
    if "arrivals" in table:
        # What a tuple takes is known later, see `use_work`: to look for faults any work will do.
        stream.arrivals = _by_seed(name, table["arrivals"], folder, work=1.0)
        stream.arrivals(0)  # what is wrong with it is said when the plan is read, not when it is run
    if "schema" in table:
        stream.schema = placed(f"{place}.schema", Schema.of, table_of(table["schema"], f"{place}.schema"))
    if "timestamp" in table:
        stream.timestamp = _timestamp(table["timestamp"], stream.schema, f"{place}.timestamp")
    if "late" in table:
        if stream.timestamp is None:
            raise PlanError("rows are late by a `timestamp` of their own only: there is none", f"{place}.late")
        stream.late = placed(f"{place}.late", microseconds, table["late"])
    if "source" in table:
        if stream.schema is None:
            raise PlanError("what is read from a file needs a `schema`", f"{place}.source")
        stream.source = table_of(table["source"], f"{place}.source")
    if "values" in table:
        stream.values = _values(table["values"], stream.schema, f"{place}.values")
    return stream


def _values(given: Any, schema: Schema | None, place: str) -> Mapping[str, Mapping[str, Any]]:
    """The tables that say what a load puts into columns; what is in them is the load's to read."""
    values = table_of(given, place)
    for column in values:
        if schema is None or column not in schema:
            raise PlanError(f"no column {column!r} in the schema{existing(column, schema or ())}", place)
    return {column: table_of(table, f"{place}.{column}") for column, table in values.items()}


def _timestamp(given: Any, schema: Schema | None, place: str) -> str:
    """The column that a stream's timestamps are in."""
    if schema is None or given not in schema:
        raise PlanError(f"no column {given!r} in the schema{existing(str(given), schema or ())}", place)
    if schema[given] not in ("timestamp", "int64"):
        raise PlanError(f"column {given!r} is {schema[given]}: a timestamp, or int64 microseconds, is wanted", place)
    return str(given)


def relation_from(name: str, given: Any, folder: Path) -> tuple[Schema, Batch]:
    """A stored relation: a file that is read when the plan is."""
    from dsms.files import stored

    place = f"relations.{name}"
    table = table_of(given, place)
    named(name, place)
    only(table, RELATION_KEYS, place)
    schema = placed(f"{place}.schema", Schema.of, table_of(table.get("schema", {}), f"{place}.schema"))
    source = table.get("source", {})
    rows = (
        source
        if isinstance(source, Batch)
        else placed(f"{place}.source", partial(stored, schema=schema, folder=folder), source)
    )
    return schema, rows


def use_work(plan: Plan, tables: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Turn utilisations into rates: once all queries are read, it is known what a tuple takes."""
    told = {name: table["arrivals"] for name, table in tables.items() if "utilisation" in table.get("arrivals", {})}
    work = work_per_tuple(plan, told)
    for stream in plan.streams:
        if stream.name in told:
            stream.arrivals = _by_seed(stream.name, told[stream.name], folder, work[stream.name])


def _by_seed(name: str, given: Any, folder: Path, work: float) -> Callable[[int], Arrivals]:
    """A stream's arrivals by the run's seed, from their table; one tuple takes so much work."""
    place = f"streams.{name}.arrivals"
    return partial(_arrivals, table_of(given, place), place, folder, work)


def _arrivals(table: Mapping[str, Any], place: str, folder: Path, work: float, seed: int) -> Any:
    return placed(place, partial(arrivals_from, seed=seed, folder=folder, work=work), table)
