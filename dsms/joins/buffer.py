"""Columns that grow at the end and are let go at the front; a row keeps its position for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dsms.batch import NULLS, Column
from dsms.joins.keys import Ints

LEAST = 1024  # rows room is made for
SPARSE = 8  # times the rows there are: of more room, most is given back


class Buffer:
    """Rows in columns, by position; nulls of a column are kept from the first one on."""

    def __init__(self, types: Mapping[str, np.dtype[np.generic]]) -> None:
        self.start = 0
        self.end = 0
        self._columns: dict[str, Column] = {name: np.empty(0, dtype=kind) for name, kind in types.items()}
        self._first = 0  # the position of what lies at 0 in the columns
        self._room = 0

    def __getstate__(self) -> dict[str, object]:
        # Where it is copied, only what it holds: the room behind is as much again.
        held = {name: self[name] for name in self._columns}
        return {"start": self.start, "end": self.end, "_columns": held, "_first": self.start, "_room": len(self)}

    def __len__(self) -> int:
        return self.end - self.start

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Column:
        """A column of all rows."""
        return self._columns[name][self.start - self._first : self.end - self._first]

    def part(self, name: str, start: int, end: int) -> Column:
        """A column of the rows from a position up to another."""
        return self._columns[name][start - self._first : end - self._first]

    def take(self, name: str, positions: Ints) -> Column:
        """A column at these positions; anything at those let go."""
        taken: Column = self._columns[name].take(positions - self._first, mode="clip")
        return taken

    def takes(self, names: Iterable[str], positions: Ints) -> dict[str, Column]:
        """Several columns at these positions, and the nulls they have."""
        places = positions - self._first
        wanted = [name for column in names for name in (column, column + NULLS) if name in self._columns]
        return {name: self._columns[name].take(places, mode="clip") for name in wanted}

    def put(self, name: str, positions: Ints, values: Column) -> None:
        """Other values in a column at these positions."""
        self._columns[name][positions - self._first] = values

    def append(self, columns: Mapping[str, Column], rows: int) -> None:
        """More rows; of these columns those that are kept."""
        for name, values in columns.items():
            if name.endswith(NULLS) and name not in self._columns and name[:-1] in self._columns and values.any():
                self._columns[name] = np.zeros(self._room, dtype=bool)
        if self.end + rows - self._first > self._room:
            self._move(max(LEAST, 2 * (len(self) + rows)))
        for name, column in self._columns.items():
            column[self.end - self._first : self.end - self._first + rows] = columns.get(name, False)
        self.end += rows

    def drop(self, start: int) -> None:
        """Let go the rows before a position."""
        self.start = min(max(start, self.start), self.end)
        if self._room > LEAST and SPARSE * len(self) < self._room:  # what a burst has needed is not kept for good
            self._move(max(LEAST, 2 * len(self)))

    def keep(self, positions: Ints) -> None:
        """Only these rows, in this order, at new positions from the end on."""
        picked = {name: self.take(name, positions) for name in self._columns}
        self.start = self._first = self.end
        self.end += len(positions)
        self._room = len(positions)
        self._columns = picked

    def _move(self, room: int) -> None:
        """The rows at the beginning of longer columns."""
        rows = len(self)
        for name in self._columns:
            moved = np.empty(room, dtype=self._columns[name].dtype)
            moved[:rows] = self[name]
            self._columns[name] = moved
        self._first, self._room = self.start, room
