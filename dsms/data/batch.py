"""Batch: rows in columns, the unit that operators take and return."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.errors import DsmsError

Column = NDArray[Any]
NULLS_SUFFIX = "?"  # a nullable column `size` has a boolean column `size?`, true where the value is null
EMPTY_STRING_BYTES = sys.getsizeof("")  # of a Python string, without its characters


class ColumnLengthError(DsmsError, ValueError):
    """Columns of one batch differ in length."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in columns; an attribute that is the same for all rows is a scalar."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    rows: int = 0
    ts: int | Column = 0  # stream timestamp, int64 microseconds
    arrived: float | Column = 0.0  # when the last input that the row needs arrived
    sign: int | Column = 1  # +1: insert, -1: retract
    size: float | Column = 1.0  # abstract load: part of a whole tuple, or bytes
    cost: float | Column = 1.0  # abstract load: factor of the operator's declared cost
    seq: int | Column = 0  # number in order of arrival
    identity: int | Column = 0  # seed of an abstract tuple's outcomes
    watermark: int | None = None  # no later row has a lower ts; None: not known
    ended: bool = False  # whether no more rows follow

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any] | Column] | None = None, **attributes: Any) -> Batch:
        """Return a batch of these columns of equal length; attributes are scalars or one value per row."""
        arrays = {name: np.asarray(values) for name, values in (columns or {}).items()}
        attributes = {n: np.asarray(v) if isinstance(v, list | tuple) else v for n, v in attributes.items()}
        varied = {n: v for n, v in attributes.items() if isinstance(v, np.ndarray)}
        lengths = {name: len(values) for name, values in (arrays | varied).items()}
        if lengths and "rows" in attributes:
            lengths["rows"] = attributes["rows"]
        if len(set(lengths.values())) > 1:
            raise ColumnLengthError(f"columns of one batch differ in length: {lengths}")
        attributes.setdefault("rows", next(iter(lengths.values()), 0))
        return cls(arrays, **attributes)

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """Concatenate batches with the same columns; `watermark` and `ended` are the last one's."""
        if len(parts) == 1:
            return parts[0]
        names = dict.fromkeys(name for part in parts for name in part.columns)
        columns = {name: np.concatenate([_column(part, name) for part in parts]) for name in names}
        attributes: dict[str, Any] = {}
        for name in ROW_ATTRIBUTES:
            values = [getattr(part, name) for part in parts]
            varies = any(isinstance(value, np.ndarray) for value in values) or len(set(values)) > 1
            attributes[name] = np.concatenate([part.each(name) for part in parts]) if varies else values[0]
        return cls(columns, sum(map(len, parts)), **attributes, watermark=parts[-1].watermark, ended=parts[-1].ended)

    def __len__(self) -> int:
        return self.rows

    def pick(self, index: Column | slice) -> Batch:
        """Return the rows at `index`: a slice, positions (repeats allowed) or a boolean mask."""
        if isinstance(index, np.ndarray) and index.dtype == bool:
            index = np.flatnonzero(index)  # once, not for every column
        columns = {name: values[index] for name, values in self.columns.items()}
        picked: dict[str, Any] = {n: v[index] for n in ROW_ATTRIBUTES if isinstance(v := getattr(self, n), np.ndarray)}
        rows = _count_picked(index, self.rows)
        if not rows and self.rows:  # a watermark without rows keeps its place in the order of arrival
            picked = {name: getattr(self, name)[0].item() for name in picked}
        return replace(self, columns=columns, rows=rows, **picked)

    def cut(self, rows: int) -> tuple[Batch, Batch]:
        """Return the first `rows` rows and the rest, as views."""
        first, rest = self.pick(slice(0, rows)), self.pick(slice(rows, None))
        if self.watermark is None and not self.ended:
            return first, rest
        return replace(
            first, watermark=int(rest.first("ts")) if rest.rows else self.watermark, ended=not rest.rows
        ), rest

    def first(self, name: str) -> float:
        """Return the attribute's value in the first row."""
        value = getattr(self, name)
        return float(value[0]) if isinstance(value, np.ndarray) else value

    def each(self, name: str) -> Column:
        """Return the attribute as a read-only column."""
        value = getattr(self, name)
        if isinstance(value, np.ndarray):
            return value
        one = np.array(value)
        one.flags.writeable = False
        return np.ndarray(self.rows, one.dtype, one, strides=(0,))  # faster than broadcast_to

    def total(self, name: str) -> float:
        """Return the sum of the attribute over the rows."""
        value = getattr(self, name)
        return float(value.sum()) if isinstance(value, np.ndarray) else value * self.rows

    def memory(self) -> float:
        """Return the bytes of its columns; without columns, the declared size of its abstract tuples."""
        held, data = 0, False
        for name, column in self.columns.items():
            if not name.startswith("cost."):  # not data
                held, data = held + column_bytes(column), True
        return float(held) if data else self.total("size")

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts, nulls as None; slow, for tests and display."""
        values: dict[str, list[Any]] = {}
        for name, column in self.columns.items():
            if not name.endswith(NULLS_SUFFIX):
                values[name] = column.tolist()
                for row in np.flatnonzero(self.columns.get(name + NULLS_SUFFIX, ())).tolist():
                    values[name][row] = None
        return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def column_bytes(column: Column) -> int:
    """Return a column's bytes; a string counts one byte per character plus its header."""
    if column.dtype != object:
        return column.nbytes
    try:
        characters = sum(map(len, column))
    except TypeError:  # not all values are strings
        characters = sum(len(value) for value in column if isinstance(value, str))
    return column.nbytes + EMPTY_STRING_BYTES * len(column) + characters


ROW_ATTRIBUTES = tuple(f.name for f in fields(Batch) if f.name not in ("columns", "rows", "watermark", "ended"))


def _column(part: Batch, name: str) -> Column:
    """Return a column of a part; all False for a null column that only other parts have."""
    return (
        part.columns[name]
        if name in part.columns or not name.endswith(NULLS_SUFFIX)
        else np.zeros(part.rows, dtype=bool)
    )


def _count_picked(index: Column | slice, rows: int) -> int:
    if isinstance(index, slice):
        return len(range(*index.indices(rows)))
    return len(index)
