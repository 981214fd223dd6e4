"""Converts the rows that a program pushes to a batch with the stream's columns, and checks them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Batch, Column
from dsms.data.schema import DTYPES, Schema, conform
from dsms.errors import DsmsError, existing

Rows = Batch | Mapping[str, Any] | Sequence[Mapping[str, Any]]
NULL_FILL: dict[str, Any] = {"int64": 0, "float64": 0.0, "bool": False, "timestamp": 0, "string": ""}


def make_batch(rows: Rows, schema: Schema, stream: str, arrived: Any = None) -> Batch:
    """Make a stream's batch from a batch, columns by name, or rows as dicts; a key missing in a dict is null."""
    if isinstance(rows, Batch):
        batch = Batch(rows.columns, rows.rows, arrived=rows.arrived, sign=rows.sign)
    else:
        columns = rows if isinstance(rows, Mapping) else _transpose(rows, schema, stream)
        batch = Batch.of(_fill_nulls(columns, schema, stream))
    batch = conform(batch, schema, stream)
    if arrived is None:
        return replace(batch, arrived=0.0) if not isinstance(batch.arrived, np.ndarray) else batch
    times = np.asarray(arrived, dtype=np.float64)
    if times.shape != (batch.rows,) or not np.isfinite(times).all():
        raise DsmsError(
            f"push into {stream!r}: arrived has the shape {times.shape};"
            f" expected a finite number for each of {batch.rows} rows"
        )
    return replace(batch, arrived=times)


def _transpose(rows: Sequence[Mapping[str, Any]], schema: Schema, stream: str) -> dict[str, list[Any]]:
    """Turn rows into columns."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise DsmsError(f"push of {rows!r} into {stream!r}: expected a Batch, columns by name, or rows as dicts")
    rows = list(rows)
    for row in rows:
        if not isinstance(row, Mapping):
            raise DsmsError(f"push into {stream!r}: a row is {row!r}; expected a mapping from columns to values")
        for name in row:
            if name not in schema:
                raise DsmsError(f"push into {stream!r}: no column {name!r} is declared{existing(str(name), schema)}")
    return {name: [row.get(name) for row in rows] for name in schema}


def _fill_nulls(columns: Mapping[str, Any], schema: Schema, stream: str) -> dict[str, Column]:
    """Convert columns to arrays; a column with None gets a column of null flags."""
    arrays: dict[str, Column] = {}
    kinds = dict(schema.fields)
    for name, values in columns.items():
        kind = kinds.get(name)
        if kind is None or (isinstance(values, np.ndarray) and values.dtype != object):
            arrays[name] = np.asarray(values)  # `conform` refuses a column that the schema lacks
            continue
        if not isinstance(values, Iterable) or isinstance(values, str | bytes):
            raise DsmsError(f"push into {stream!r}: column {name!r} is {values!r}; expected a value for each row")
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        nulls = [value is None for value in listed]
        if any(nulls):
            listed = [NULL_FILL[kind] if value is None else value for value in listed]
            arrays[name + NULLS_SUFFIX] = np.array(nulls)
        arrays[name] = _make_array(listed, kind, f"push into {stream!r}: column {name!r}")
    return arrays


def _make_array(values: list[Any], kind: str, what: str) -> Column:
    if not values:
        return np.empty(0, DTYPES[kind])
    if kind == "string":
        for value in values:
            if not isinstance(value, str):
                raise DsmsError(f"{what} has {value!r}; expected a string")
        texts = np.empty(len(values), dtype=object)
        texts[:] = values
        return texts
    if not (array := _make_object_array(values, what)).dtype.kind == "b" and any(
        isinstance(value, bool) for value in values
    ):
        raise DsmsError(f"{what} mixes bool with other values; expected {kind}")
    return array


def _make_object_array(values: list[Any], what: str) -> Column:
    try:
        return np.array(values)
    except (ValueError, OverflowError) as error:
        raise DsmsError(f"{what}: {error}") from None
