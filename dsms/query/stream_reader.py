"""Reads the `[streams.NAME]` and `[relations.NAME]` tables of a plan file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dsms.arrivals import Arrivals, arrivals_from
from dsms.config.fields import (
    AnyField,
    Field,
    NumberField,
    TableField,
    check_name,
    check_table,
    read_at,
    read_fields,
)
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.durations import parse_duration_us
from dsms.errors import PlanError, existing
from dsms.plan.graph import Plan, Stream
from dsms.query.offered_load import work_per_tuple

STREAM_FIELDS: dict[str, Field[Any]] = {
    "size": NumberField(above=0),
    "arrivals": TableField(),
    "schema": TableField(),
    "timestamp": AnyField(),
    "late": AnyField(),
    "source": TableField(),
    "values": TableField(),
}
RELATION_FIELDS: dict[str, Field[Any]] = {"schema": TableField(), "source": AnyField()}


def read_stream(name: str, table: Any, folder: Path) -> Stream:
    """Make a stream of its table."""
    place = f"streams.{name}"
    check_table(table, place)
    check_name(name, place)
    given = read_fields(table, STREAM_FIELDS, place)
    stream = Stream(name, given.get("size", 1.0))
    if "arrivals" in given:
        # The work of a tuple is known later, see `set_arrivals_for_utilisation`; any work will do to find errors.
        stream.arrivals = _make_arrivals_by_seed(name, given["arrivals"], folder, work=1.0)
        stream.arrivals(0)  # errors are raised when the plan is read, not when it runs
    if "schema" in given:
        stream.schema = read_at(f"{place}.schema", Schema.of, given["schema"])
    if "timestamp" in given:
        stream.timestamp = _read_timestamp(given["timestamp"], stream.schema, f"{place}.timestamp")
    if "late" in given:
        if stream.timestamp is None:
            raise PlanError("a stream without a `timestamp` column has no late rows", f"{place}.late")
        stream.late = read_at(f"{place}.late", parse_duration_us, given["late"])
    if "source" in given:
        if stream.schema is None:
            raise PlanError("a stream that is read from a file needs a `schema`", f"{place}.source")
        stream.source = given["source"]
    if "values" in given:
        stream.values = _read_values(given["values"], stream.schema, f"{place}.values")
    return stream


def _read_values(values: Mapping[str, Any], schema: Schema | None, place: str) -> Mapping[str, Mapping[str, Any]]:
    """The tables of generated values, by column; the load generator reads what they contain."""
    for column in values:
        if schema is None or column not in schema:
            raise PlanError(f"no column {column!r} in the schema{existing(column, schema or ())}", place)
    return {column: check_table(table, f"{place}.{column}") for column, table in values.items()}


def _read_timestamp(column: Any, schema: Schema | None, place: str) -> str:
    """The column that holds a stream's timestamps."""
    if schema is None or column not in schema:
        raise PlanError(f"no column {column!r} in the schema{existing(str(column), schema or ())}", place)
    if schema[column] not in ("timestamp", "int64"):
        raise PlanError(f"column {column!r} is {schema[column]}: it must be timestamp, or int64 microseconds", place)
    return str(column)


def read_relation(name: str, table: Any, folder: Path) -> tuple[Schema, Batch]:
    """Read a stored relation: its schema, and the rows of its file."""
    from dsms.io import read_relation_rows  # pyarrow loads slowly: only for plans with relations

    place = f"relations.{name}"
    check_table(table, place)
    check_name(name, place)
    given = read_fields(table, RELATION_FIELDS, place)
    schema = read_at(f"{place}.schema", Schema.of, given.get("schema", {}))
    source = given.get("source", {})
    rows = (
        source
        if isinstance(source, Batch)
        else read_at(f"{place}.source", partial(read_relation_rows, schema=schema, folder=folder), source)
    )
    return schema, rows


def set_arrivals_for_utilisation(plan: Plan, tables: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Turn utilisations into rates: once all queries are read, the CPU time of a tuple is known."""
    arrivals = {name: table["arrivals"] for name, table in tables.items() if "utilisation" in table.get("arrivals", {})}
    work = work_per_tuple(plan, arrivals)
    for stream in plan.streams:
        if stream.name in arrivals:
            stream.arrivals = _make_arrivals_by_seed(stream.name, arrivals[stream.name], folder, work[stream.name])


def _make_arrivals_by_seed(name: str, table: Mapping[str, Any], folder: Path, work: float) -> Callable[[int], Arrivals]:
    """A function from the run's seed to a stream's arrivals; `work` is the CPU time of one tuple."""
    return partial(_make_arrivals, table, f"streams.{name}.arrivals", folder, work)


def _make_arrivals(table: Mapping[str, Any], place: str, folder: Path, work: float, seed: int) -> Any:
    return read_at(place, partial(arrivals_from, seed=seed, folder=folder, work=work), table)
