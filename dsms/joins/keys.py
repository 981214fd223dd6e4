"""Values that are compared for equality: one form for each, and a short code to look it up by."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.batch import Column
from dsms.errors import PlanError

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Kind = Literal["whole", "real", "text"]

CODE_BITS = 38
CODES = 2**CODE_BITS  # a whole number from 0 up to this is its own code
KINDS: dict[str, Kind] = {
    "int64": "whole", "timestamp": "whole", "bool": "whole", "float64": "real", "string": "text",
}  # fmt: skip


class Values(NamedTuple):
    """The values of some rows by which they are looked up; rows with a null equal nothing."""

    columns: Sequence[Column]
    nulls: Mask | None = None


def common_kind(types: Collection[str]) -> Kind:
    """How columns of these types are compared with each other: whole numbers with real ones as real ones."""
    kinds = {KINDS[kind] for kind in types}
    if "text" in kinds and len(kinds) > 1:
        raise PlanError(f"columns of types {sorted(types)} cannot be equal; a string equals strings alone")
    return "text" if "text" in kinds else "real" if "real" in kinds else "whole"


def plain(column: Column, kind: Kind) -> Column:
    """The column with one form for each value, so that equal ones are the same bits: -0.0 is 0.0, nan is nan."""
    if kind == "text":
        return column if column.dtype == object else column.astype(object)
    if kind == "whole":
        return column.astype(np.int64, copy=False)
    real = column.astype(np.float64) + 0.0
    real[np.isnan(real)] = np.nan
    return real.view(np.int64)


def codes(columns: Sequence[Column], rows: int) -> tuple[Ints, bool]:
    """A code below 2**38 for each row, equal for equal rows; and whether different rows have different ones."""
    if not columns:
        return np.zeros(rows, dtype=np.int64), True
    if len(columns) == 1 and columns[0].dtype != object:
        own = columns[0].view(np.uint64)
        if not rows or int(own.max()) < CODES:
            return columns[0], True
        return np.where(own < CODES, own, _folded(columns)).view(np.int64), False
    return _folded(columns).view(np.int64), False


def _folded(columns: Sequence[Column]) -> NDArray[np.uint64]:
    """The columns mixed, and of the mixture as many bits as a code has."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed ^= _bits(column)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    return mixed >> np.uint64(64 - CODE_BITS)


def _bits(column: Column) -> NDArray[np.uint64]:
    if column.dtype == object:
        return np.fromiter(map(hash, column), np.int64, len(column)).view(np.uint64)
    return column.view(np.uint64)
