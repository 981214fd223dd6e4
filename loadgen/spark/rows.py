"""Converts Spark's Arrow rows into batches of our streams, and checks that their columns fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.errors import DsmsError, existing
from dsms.io.arrow_columns import batch_from_arrow, convert_column

STREAM, NUMBER, DUE = "_stream", "_number", "_due"  # columns of a load's rows: stream, row number, due time
RESERVED_PREFIX = "_"  # of such columns; they do not belong to a stream
MICROS_PER_S = 1e6
# By type of a stream's column: the Spark types that it accepts.
SPARK_INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")
ACCEPTED_SPARK_TYPES: Mapping[str, tuple[str, ...]] = {
    "int64": SPARK_INTEGER_TYPES,
    "float64": ("double", "float", *SPARK_INTEGER_TYPES),
    "bool": ("boolean",),
    "timestamp": ("timestamp", "timestamp_ntz", "bigint"),
    "string": ("string",),
}


def check_columns(types: Mapping[str, str], schema: Schema, stream: str, own: tuple[str, ...] = ()) -> None:
    """Refuse columns (names to Spark types) that do not fit a stream's schema; `own` are the sink's own columns."""
    columns = {name: kind for name, kind in types.items() if name not in own and not name.startswith(RESERVED_PREFIX)}
    for name, kind in schema.fields:
        if name not in types:
            raise DsmsError(f"rows for {stream!r}: no column {name!r}{existing(name, columns)}")
        if types[name] not in ACCEPTED_SPARK_TYPES[kind]:
            accepted = " or ".join(ACCEPTED_SPARK_TYPES[kind])
            raise DsmsError(f"rows for {stream!r}: column {name!r} is {types[name]}; expected {accepted} for {kind}")
    if unknown := sorted(set(columns) - set(schema)):
        raise DsmsError(
            f"rows for {stream!r}: column {unknown[0]!r} is not declared{existing(unknown[0], schema)}; "
            f"drop it, or prefix its name with {RESERVED_PREFIX!r}"
        )


def split_batches(
    rows: pa.RecordBatch, schemas: Mapping[str, Schema], stream: str | None, due: str | None
) -> Iterator[tuple[str, Batch]]:
    """Split rows by stream (one stream, or that of the column `_stream`); `due` names the column of due times."""
    for name, part in _split_by_stream(rows) if stream is None else ((stream, rows),):
        if name not in schemas:
            raise DsmsError(f"rows for {name!r}: no such stream{existing(name, schemas)}")
        columns = {column: _convert_column(part, column, kind, name) for column, kind in schemas[name].fields}
        batch = batch_from_arrow(columns, schemas[name])
        yield name, batch if due is None else replace(batch, arrived=_to_seconds(part.column(due), due))


def _split_by_stream(rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Split by the column `_stream`, in the order of the streams' first rows; rows of a stream keep their order."""
    names = rows.column(STREAM).dictionary_encode()
    if names.null_count:
        raise DsmsError(
            f"column {STREAM!r} is null in {names.null_count} of {len(names)} rows: expected a stream's name"
        )
    if len(names.dictionary) == 1:
        yield names.dictionary[0].as_py(), rows
        return
    places = names.indices.to_numpy()
    for place, name in enumerate(names.dictionary.to_pylist()):
        yield name, rows.take(pa.array(np.flatnonzero(places == place)))


def _convert_column(rows: pa.RecordBatch, name: str, kind: str, stream: str) -> pa.Array:
    column, bad = convert_column(rows.column(name), kind)
    if len(bad):
        value = rows.column(name)[int(bad[0])].as_py()
        raise DsmsError(f"rows for {stream!r}: column {name!r} has {value!r}, which is not a value of {kind}")
    return column


def _to_seconds(due: pa.Array, name: str) -> NDArray[np.float64]:
    """Due times in seconds since 1970, from a column of seconds or of timestamps."""
    if due.null_count:
        raise DsmsError(f"column {name!r} is null in {due.null_count} of {len(due)} rows: expected their due time")
    if pa.types.is_temporal(due.type):
        return np.asarray(due.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / MICROS_PER_S)
    return np.asarray(due.cast(pa.float64()).to_numpy())


def to_spark_type(kind: str) -> Any:
    """The Spark type of a generated column."""
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, TimestampType

    types = {"int64": LongType, "float64": DoubleType, "bool": BooleanType, "timestamp": TimestampType}
    return types.get(kind, StringType)()
