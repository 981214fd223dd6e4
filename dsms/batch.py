"""Rows in columns: what operators take and give where tuples are real or cross a process."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.errors import DsmsError

Column = NDArray[Any]
NULLS = "?"  # a column `size` with nulls has a boolean column `size?` beside it: true where there is none
TEXT = sys.getsizeof("")  # bytes that Python takes for a text without its characters


class UnevenError(DsmsError, ValueError):
    """Columns of one batch that are not of one length."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows; what is the same for all of them is a scalar until it varies."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    rows: int = 0
    ts: int | Column = 0  # stream timestamp, int64 microseconds
    arrived: float | Column = 0.0  # when the system first saw what the row needs
    sign: int | Column = 1  # +1 appended, -1 taken back
    size: float | Column = 1.0  # abstract load: how much of a whole tuple the row is, or its bytes
    cost: float | Column = 1.0  # abstract load: times the operator's declared cost
    seq: int | Column = 0  # its number in the order of arrival: the oldest has the lowest
    identity: int | Column = 0  # what an abstract tuple's fates are drawn from
    upto: int | None = None  # no row that comes after these has a lower ts; None: not known
    ended: bool = False  # whether nothing comes any more

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any] | Column] | None = None, **attributes: Any) -> Batch:
        """A batch of these columns, all equally long; attributes may be scalars or one value a row."""
        arrays = {name: np.asarray(values) for name, values in (columns or {}).items()}
        attributes = {n: np.asarray(v) if isinstance(v, list | tuple) else v for n, v in attributes.items()}
        varied = {n: v for n, v in attributes.items() if isinstance(v, np.ndarray)}
        lengths = {name: len(values) for name, values in (arrays | varied).items()}
        if lengths and "rows" in attributes:
            lengths["rows"] = attributes["rows"]
        if len(set(lengths.values())) > 1:
            raise UnevenError(f"columns of one batch differ in length: {lengths}")
        attributes.setdefault("rows", next(iter(lengths.values()), 0))
        return cls(arrays, **attributes)

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """The rows of batches with the same columns, one after the other; `upto` and `ended` are the last one's."""
        if len(parts) == 1:
            return parts[0]
        names = dict.fromkeys(name for part in parts for name in part.columns)
        columns = {name: np.concatenate([_column(part, name) for part in parts]) for name in names}
        attributes: dict[str, Any] = {}
        for name in VARIES:
            values = [getattr(part, name) for part in parts]
            varies = any(isinstance(value, np.ndarray) for value in values) or len(set(values)) > 1
            attributes[name] = np.concatenate([part.each(name) for part in parts]) if varies else values[0]
        return cls(columns, sum(map(len, parts)), **attributes, upto=parts[-1].upto, ended=parts[-1].ended)

    def __len__(self) -> int:
        return self.rows

    def pick(self, index: Column | slice) -> Batch:
        """The rows at `index`: a slice, positions (repeats allowed) or a boolean mask."""
        if isinstance(index, np.ndarray) and index.dtype == bool:
            index = np.flatnonzero(index)  # looked for once, not once a column
        columns = {name: values[index] for name, values in self.columns.items()}
        picked: dict[str, Any] = {n: v[index] for n in VARIES if isinstance(v := getattr(self, n), np.ndarray)}
        rows = _picked(index, self.rows)
        if not rows and self.rows:  # what time alone is told by still has its place in the order of arrival
            picked = {name: getattr(self, name)[0].item() for name in picked}
        return replace(self, columns=columns, rows=rows, **picked)

    def cut(self, rows: int) -> tuple[Batch, Batch]:
        """The first rows, and the rest; views, no copy."""
        first, rest = self.pick(slice(0, rows)), self.pick(slice(rows, None))
        if self.upto is None and not self.ended:
            return first, rest
        return replace(first, upto=int(rest.first("ts")) if rest.rows else self.upto, ended=not rest.rows), rest

    def first(self, name: str) -> float:
        """The attribute's value in the first row."""
        value = getattr(self, name)
        return float(value[0]) if isinstance(value, np.ndarray) else value

    def each(self, name: str) -> Column:
        """The attribute as one value a row, whether it varies or not; not to be written to."""
        value = getattr(self, name)
        if isinstance(value, np.ndarray):
            return value
        one = np.array(value)
        one.flags.writeable = False
        return np.ndarray(self.rows, one.dtype, one, strides=(0,))  # as broadcast_to, in less time

    def total(self, name: str) -> float:
        """The attribute summed over the rows."""
        value = getattr(self, name)
        return float(value.sum()) if isinstance(value, np.ndarray) else value * self.rows

    def memory(self) -> float:
        """Its bytes: of its columns where it has some, else what its abstract tuples are said to be."""
        held, data = 0, False
        for name, column in self.columns.items():
            if not name.startswith("cost."):  # not data
                held, data = held + column_bytes(column), True
        return float(held) if data else self.total("size")

    def records(self) -> list[dict[str, Any]]:
        """The columns as a list of rows, nulls as None: for tests and for people, not for speed."""
        values: dict[str, list[Any]] = {}
        for name, column in self.columns.items():
            if not name.endswith(NULLS):
                values[name] = column.tolist()
                for row in np.flatnonzero(self.columns.get(name + NULLS, ())).tolist():
                    values[name][row] = None
        return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def column_bytes(column: Column) -> int:
    """A column's bytes; of one of texts, those of the texts too, each taken to be its own with a byte a character."""
    if column.dtype != object:
        return column.nbytes
    try:
        characters = sum(map(len, column))
    except TypeError:  # there are others among them
        characters = sum(len(value) for value in column if isinstance(value, str))
    return column.nbytes + TEXT * len(column) + characters


VARIES = tuple(f.name for f in fields(Batch) if f.name not in ("columns", "rows", "upto", "ended"))


def _column(part: Batch, name: str) -> Column:
    """A column of a part, or no nulls where another part has some."""
    return part.columns[name] if name in part.columns or not name.endswith(NULLS) else np.zeros(part.rows, dtype=bool)


def _picked(index: Column | slice, rows: int) -> int:
    if isinstance(index, slice):
        return len(range(*index.indices(rows)))
    return len(index)
