"""Normalizes join keys, so that equal values have equal bits, and encodes them as short integers for the index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.data.batch import Column
from dsms.errors import PlanError

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Kind = Literal["whole", "real", "text"]

CODE_BITS = 38
EXACT_CODE_LIMIT = 2**CODE_BITS  # an integer from 0 up to this is its own code
KINDS: dict[str, Kind] = {
    "int64": "whole", "timestamp": "whole", "bool": "whole", "float64": "real", "string": "text",
}  # fmt: skip


class KeyColumns(NamedTuple):
    """The key values of some rows; a row with a null matches nothing."""

    columns: Sequence[Column]
    nulls: Mask | None = None


def common_kind(types: Collection[str]) -> Kind:
    """Return the kind in which columns of these types are compared: integers with floats as floats."""
    kinds = {KINDS[kind] for kind in types}
    if "text" in kinds and len(kinds) > 1:
        raise PlanError(f"columns of types {sorted(types)} cannot be compared: a string only equals a string")
    return "text" if "text" in kinds else "real" if "real" in kinds else "whole"


def normalize_column(column: Column, kind: Kind) -> Column:
    """Return the column in a form in which equal values have equal bits: -0.0 becomes 0.0, and all nans are equal."""
    if kind == "text":
        return column if column.dtype == object else column.astype(object)
    if kind == "whole":
        return column.astype(np.int64, copy=False)
    real = column.astype(np.float64) + 0.0
    real[np.isnan(real)] = np.nan
    return real.view(np.int64)


def encode_keys(columns: Sequence[Column], rows: int) -> tuple[Ints, bool]:
    """Return a code below 2**38 for each row, equal for equal rows, and whether different rows have different codes."""
    if not columns:
        return np.zeros(rows, dtype=np.int64), True
    if len(columns) == 1 and columns[0].dtype != object:
        own = columns[0].view(np.uint64)
        if not rows or int(own.max()) < EXACT_CODE_LIMIT:
            return columns[0], True
        return np.where(own < EXACT_CODE_LIMIT, own, _hash_columns(columns)).view(np.int64), False
    return _hash_columns(columns).view(np.int64), False


def _hash_columns(columns: Sequence[Column]) -> NDArray[np.uint64]:
    """Hash the rows of the columns to `CODE_BITS` bits."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed ^= _column_bits(column)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    return mixed >> np.uint64(64 - CODE_BITS)


def _column_bits(column: Column) -> NDArray[np.uint64]:
    if column.dtype == object:
        return np.fromiter(map(hash, column), np.int64, len(column)).view(np.uint64)
    return column.view(np.uint64)
