"""A growable column store: rows are appended at the end and dropped at the front, and keep their positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dsms.data.batch import NULLS_SUFFIX, Column
from dsms.operators.joins.state.key_codes import Ints

MIN_CAPACITY_ROWS = 1024
SHRINK_FACTOR = 8  # a buffer with more capacity than this many times its rows shrinks


class ColumnBuffer:
    """Columns of rows, addressed by position; a column's null mask exists only after its first null."""

    def __init__(self, types: Mapping[str, np.dtype[np.generic]]) -> None:
        self.start = 0
        self.end = 0
        self._columns: dict[str, Column] = {name: np.empty(0, dtype=kind) for name, kind in types.items()}
        self._first = 0  # the position of the row at index 0 of the arrays
        self._room = 0  # capacity in rows

    def __getstate__(self) -> dict[str, object]:
        # Copy only the rows: the spare capacity is as large again.
        held = {name: self[name] for name in self._columns}
        return {"start": self.start, "end": self.end, "_columns": held, "_first": self.start, "_room": len(self)}

    def __len__(self) -> int:
        return self.end - self.start

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Column:
        """Return a column of all rows."""
        return self._columns[name][self.start - self._first : self.end - self._first]

    def part(self, name: str, start: int, end: int) -> Column:
        """Return a column of the rows from `start` up to `end`."""
        return self._columns[name][start - self._first : end - self._first]

    def take(self, name: str, positions: Ints) -> Column:
        """Return a column at these positions; dropped positions give arbitrary values."""
        taken: Column = self._columns[name].take(positions - self._first, mode="clip")
        return taken

    def takes(self, names: Iterable[str], positions: Ints) -> dict[str, Column]:
        """Return several columns at these positions, with their null masks."""
        indexes = positions - self._first
        chosen = [name for column in names for name in (column, column + NULLS_SUFFIX) if name in self._columns]
        return {name: self._columns[name].take(indexes, mode="clip") for name in chosen}

    def put(self, name: str, positions: Ints, values: Column) -> None:
        """Overwrite a column at these positions."""
        self._columns[name][positions - self._first] = values

    def append(self, columns: Mapping[str, Column], rows: int) -> None:
        """Append rows; columns that the buffer does not have are ignored."""
        for name, values in columns.items():
            if (
                name.endswith(NULLS_SUFFIX)
                and name not in self._columns
                and name[:-1] in self._columns
                and values.any()
            ):
                self._columns[name] = np.zeros(self._room, dtype=bool)
        if self.end + rows - self._first > self._room:
            self._move(max(MIN_CAPACITY_ROWS, 2 * (len(self) + rows)))
        for name, column in self._columns.items():
            column[self.end - self._first : self.end - self._first + rows] = columns.get(name, False)
        self.end += rows

    def drop(self, start: int) -> None:
        """Drop the rows before a position."""
        self.start = min(max(start, self.start), self.end)
        # Return the memory that a burst has needed.
        if self._room > MIN_CAPACITY_ROWS and SHRINK_FACTOR * len(self) < self._room:
            self._move(max(MIN_CAPACITY_ROWS, 2 * len(self)))

    def keep(self, positions: Ints) -> None:
        """Keep only these rows, in this order, at new positions from `end` on."""
        picked = {name: self.take(name, positions) for name in self._columns}
        self.start = self._first = self.end
        self.end += len(positions)
        self._room = len(positions)
        self._columns = picked

    def _move(self, room: int) -> None:
        """Copy the rows into new arrays of the given capacity."""
        rows = len(self)
        for name in self._columns:
            moved = np.empty(room, dtype=self._columns[name].dtype)
            moved[:rows] = self[name]
            self._columns[name] = moved
        self._first, self._room = self.start, room
