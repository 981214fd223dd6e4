"""Streams and stored relations as a plan file describes them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dsms.arrivals import arrivals_from
from dsms.batch import Batch
from dsms.durations import microseconds
from dsms.errors import PlanError, existing
from dsms.plan import Stream
from dsms.reading import named, number, only, placed, table_of
from dsms.schema import Schema

STREAM_KEYS = ("size", "arrivals", "schema", "timestamp", "late", "source")
RELATION_KEYS = ("schema", "source")


def stream_from(name: str, given: Any, folder: Path) -> Stream:
    place = f"streams.{name}"
    table = table_of(given, place)
    named(name, place)
    only(table, STREAM_KEYS, place)
    stream = Stream(name, number(table.get("size", 1.0), f"{place}.size", positive=True))
    if "arrivals" in table:
        arrivals = partial(_arrivals, table_of(table["arrivals"], f"{place}.arrivals"), f"{place}.arrivals", folder)
        arrivals(0)  # what is wrong with it is said when the plan is read, not when it is run
        stream.arrivals = arrivals
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
    return stream


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


def _arrivals(table: Mapping[str, Any], place: str, folder: Path, seed: int) -> Any:
    return placed(place, partial(arrivals_from, seed=seed, folder=folder), table)
