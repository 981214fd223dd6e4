"""Schema: a stream's columns and their types, and the check of pushed batches against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Batch, Column
from dsms.errors import DsmsError, PlanError, existing

# A timestamp is int64 microseconds; a string is a Python string in a column of objects, which numpy picks, compares
# and sorts faster than its own variable strings.
DTYPES: dict[str, np.dtype[np.generic]] = {
    "int64": np.dtype(np.int64),
    "float64": np.dtype(np.float64),
    "bool": np.dtype(np.bool_),
    "timestamp": np.dtype(np.int64),
    "string": np.dtype(object),
}


TIMESTAMP_LIMIT_US = 2**54  # the largest distance of a timestamp from 1970, some 570 years


@dataclass(frozen=True)
class Schema:
    """Columns in order with their types; every column is nullable."""

    fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, types: Mapping[str, str]) -> Schema:
        """Return the schema of a plan file's table `{ src = "int64", … }`."""
        for name, kind in types.items():
            if kind not in DTYPES:
                raise PlanError(f"{kind!r} is no type{existing(str(kind), DTYPES)}", name)
            if not name or "?" in name or "." in name:
                raise PlanError(f"{name!r} cannot be a column name: it must not contain '?' or '.'", name)
        return cls(tuple(types.items()))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        return any(name == known for known, _ in self.fields)

    def __getitem__(self, name: str) -> str:
        """Return the type of a column."""
        for known, kind in self.fields:
            if known == name:
                return kind
        raise PlanError(f"no column {name!r}{existing(name, self)}")


def conform(batch: Batch, schema: Schema, stream: str) -> Batch:
    """Return the batch with exactly the schema's columns and types; numpy strings and times are converted."""
    changed = {}
    for name, kind in schema.fields:
        column = batch.columns.get(name)
        if column is None:
            raise DsmsError(f"push into {stream!r}: no column {name!r}{existing(name, batch.columns)}")
        if column.ndim != 1:
            raise DsmsError(f"push into {stream!r}: column {name!r} has {column.ndim} dimensions: expected 1")
        if column.dtype is not DTYPES[kind] and column.dtype != DTYPES[kind]:
            changed[name] = _convert(column, kind, f"push into {stream!r}: column {name!r}")
    if len(batch.columns) > len(schema.fields):
        for name in schema:
            nulls = batch.columns.get(name + NULLS_SUFFIX)
            if nulls is not None and nulls.dtype != bool:
                raise DsmsError(f"push into {stream!r}: column {name + NULLS_SUFFIX!r} is {nulls.dtype}: expected bool")
        known = {*schema, *(name + NULLS_SUFFIX for name in schema)}
        if strange := sorted(set(batch.columns) - known):
            raise DsmsError(f"push into {stream!r}: no column {strange[0]!r} is declared{existing(strange[0], schema)}")
    return replace(batch, columns={**batch.columns, **changed}) if changed else batch


def infer_schema(batch: Batch) -> Schema:
    """Infer a schema from the columns of a batch."""
    names = [name for name in batch.columns if not name.endswith(NULLS_SUFFIX)]
    return Schema.of({name: type_of_dtype(batch.columns[name].dtype) for name in names})


def type_of_dtype(dtype: np.dtype[np.generic]) -> str:
    """Return the schema type of a numpy dtype."""
    kinds = {"i": "int64", "u": "int64", "f": "float64", "b": "bool", "O": "string", "U": "string", "T": "string"}
    if dtype.kind not in kinds and dtype.kind != "M":
        raise DsmsError(f"a column of {dtype}: expected one of {list(DTYPES)}")
    return kinds.get(dtype.kind, "timestamp")


def _convert(column: Column, kind: str, what: str) -> Column:
    if kind == "string" and column.dtype.kind in "UT":
        return column.astype(object)
    if kind == "timestamp" and column.dtype.kind == "M":
        return column.astype("datetime64[us]").view(np.int64)
    if kind in ("int64", "timestamp") and column.dtype.kind in "iu" and np.can_cast(column.dtype, np.int64):
        return column.astype(np.int64)
    if kind == "float64" and column.dtype.kind in "iuf":
        return column.astype(np.float64)
    raise DsmsError(f"{what} is {column.dtype}: expected {kind}")
