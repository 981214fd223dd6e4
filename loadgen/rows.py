"""Spark's rows as a stream's: which columns are whose, and Arrow's as batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dsms.batch import Batch
from dsms.errors import DsmsError, existing
from dsms.files.columns import batch_of, fitted
from dsms.schema import Schema

STREAM, NUMBER, DUE = "_stream", "_number", "_due"  # of a load's rows: whose, which, and when they should come
OWN = "_"  # what such columns begin with: no stream's
MICROS = 1e6
# By type of a stream's column: what Spark may have in its place, by the names of its types.
WHOLE = ("tinyint", "smallint", "int", "bigint")
SPARK: Mapping[str, tuple[str, ...]] = {
    "int64": WHOLE,
    "float64": ("double", "float", *WHOLE),
    "bool": ("boolean",),
    "timestamp": ("timestamp", "timestamp_ntz", "bigint"),
    "string": ("string",),
}


def check(given: Mapping[str, str], schema: Schema, stream: str, own: tuple[str, ...] = ()) -> None:
    """Refuse columns (names to Spark's types) that rows of a stream cannot be made of; `own` are not meant for it."""
    columns = {name: kind for name, kind in given.items() if name not in own and not name.startswith(OWN)}
    for name, kind in schema.fields:
        if name not in given:
            raise DsmsError(f"rows for {stream!r}: no column {name!r}{existing(name, columns)}")
        if given[name] not in SPARK[kind]:
            wanted = " or ".join(SPARK[kind])
            raise DsmsError(f"rows for {stream!r}: column {name!r} is {given[name]}; {wanted} is wanted for {kind}")
    if strange := sorted(set(columns) - set(schema)):
        raise DsmsError(
            f"rows for {stream!r}: no column {strange[0]!r} is declared{existing(strange[0], schema)}; "
            f"drop it, or let its name begin with {OWN!r}"
        )


def batches(
    rows: pa.RecordBatch, schemas: Mapping[str, Schema], stream: str | None, due: str | None
) -> Iterator[tuple[str, Batch]]:
    """The rows by stream (all of one, or as the column `_stream` says), each with when it was due, if that is known."""
    for name, part in _split(rows) if stream is None else ((stream, rows),):
        if name not in schemas:
            raise DsmsError(f"rows for {name!r}: no such stream{existing(name, schemas)}")
        columns = {column: _fitted(part, column, kind, name) for column, kind in schemas[name].fields}
        batch = batch_of(columns, schemas[name])
        yield name, batch if due is None else replace(batch, arrived=_seconds(part.column(due), due))


def _split(rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """By stream, in the order of their first rows; each keeps its rows' order."""
    names = rows.column(STREAM).dictionary_encode()
    if names.null_count:
        raise DsmsError(
            f"column {STREAM!r} is null in {names.null_count} of {len(names)} rows: a stream's name is wanted"
        )
    if len(names.dictionary) == 1:
        yield names.dictionary[0].as_py(), rows
        return
    places = names.indices.to_numpy()
    for place, name in enumerate(names.dictionary.to_pylist()):
        yield name, rows.take(pa.array(np.flatnonzero(places == place)))


def _fitted(rows: pa.RecordBatch, name: str, kind: str, stream: str) -> pa.Array:
    found, bad = fitted(rows.column(name), kind)
    if len(bad):
        value = rows.column(name)[int(bad[0])].as_py()
        raise DsmsError(f"rows for {stream!r}: column {name!r} has {value!r}, which is no {kind}")
    return found


def _seconds(due: pa.Array, name: str) -> NDArray[np.float64]:
    """When rows were due, in seconds since 1970; from numbers of them, or from timestamps."""
    if due.null_count:
        raise DsmsError(f"column {name!r} is null in {due.null_count} of {len(due)} rows: when they are due is wanted")
    if pa.types.is_temporal(due.type):
        return np.asarray(due.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / MICROS)
    return np.asarray(due.cast(pa.float64()).to_numpy())


def spark_type(kind: str) -> Any:
    """The type of Spark's that a stream's column has where we make it."""
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, TimestampType

    types = {"int64": LongType, "float64": DoubleType, "bool": BooleanType, "timestamp": TimestampType}
    return types.get(kind, StringType)()
