"""What people have rows in, as a batch with a stream's columns: checked before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dsms.batch import NULLS, Batch, Column
from dsms.errors import DsmsError, existing
from dsms.schema import DTYPES, Schema, conformed

Rows = Batch | Mapping[str, Any] | Sequence[Mapping[str, Any]]
EMPTY: dict[str, Any] = {"int64": 0, "float64": 0.0, "bool": False, "timestamp": 0, "string": ""}


def batch_from(rows: Rows, schema: Schema, stream: str, arrived: Any = None) -> Batch:
    """A batch, columns by name, or a list of rows as dicts (a key that a row lacks is null), as a batch of a stream."""
    if isinstance(rows, Batch):
        batch = Batch(rows.columns, rows.rows, arrived=rows.arrived, sign=rows.sign)
    else:
        columns = rows if isinstance(rows, Mapping) else _turned(rows, schema, stream)
        batch = Batch.of(_filled(columns, schema, stream))
    batch = conformed(batch, schema, stream)
    if arrived is None:
        return replace(batch, arrived=0.0) if not isinstance(batch.arrived, np.ndarray) else batch
    due = np.asarray(arrived, dtype=np.float64)
    if due.shape != (batch.rows,) or not np.isfinite(due).all():
        raise DsmsError(
            f"push into {stream!r}: arrivals of the shape {due.shape}; a finite number for each of {batch.rows} rows"
            " is wanted"
        )
    return replace(batch, arrived=due)


def _turned(rows: Sequence[Mapping[str, Any]], schema: Schema, stream: str) -> dict[str, list[Any]]:
    """Rows as columns."""
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise DsmsError(f"push of {rows!r} into {stream!r}: a Batch, columns by name, or rows as dicts are wanted")
    rows = list(rows)
    for row in rows:
        if not isinstance(row, Mapping):
            raise DsmsError(f"push into {stream!r}: a row is {row!r}; a mapping from columns to values is wanted")
        for name in row:
            if name not in schema:
                raise DsmsError(f"push into {stream!r}: no column {name!r} is declared{existing(str(name), schema)}")
    return {name: [row.get(name) for row in rows] for name in schema}


def _filled(columns: Mapping[str, Any], schema: Schema, stream: str) -> dict[str, Column]:
    """Columns as arrays, with nulls beside them where values are None."""
    made: dict[str, Column] = {}
    kinds = dict(schema.fields)
    for name, values in columns.items():
        kind = kinds.get(name)
        if kind is None or (isinstance(values, np.ndarray) and values.dtype != object):
            made[name] = np.asarray(values)  # if nobody knows it, that is said later
            continue
        if not isinstance(values, Iterable) or isinstance(values, str | bytes):
            raise DsmsError(f"push into {stream!r}: column {name!r} is {values!r}; a value for each row is wanted")
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        nulls = [value is None for value in listed]
        if any(nulls):
            listed = [EMPTY[kind] if value is None else value for value in listed]
            made[name + NULLS] = np.array(nulls)
        made[name] = _array(listed, kind, f"push into {stream!r}: column {name!r}")
    return made


def _array(values: list[Any], kind: str, what: str) -> Column:
    if not values:
        return np.empty(0, DTYPES[kind])
    if kind == "string":
        for value in values:
            if not isinstance(value, str):
                raise DsmsError(f"{what} has {value!r}: string is wanted")
        made = np.empty(len(values), dtype=object)
        made[:] = values
        return made
    if not (array := _plain(values, what)).dtype.kind == "b" and any(isinstance(value, bool) for value in values):
        raise DsmsError(f"{what} has truth values among others: {kind} is wanted")
    return array


def _plain(values: list[Any], what: str) -> Column:
    try:
        return np.array(values)
    except (ValueError, OverflowError) as error:
        raise DsmsError(f"{what}: {error}") from None
