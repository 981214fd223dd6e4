"""Buffers recorded rows until the next part is written: one table of numbers for each kind of event."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dsms.io.table_parts import Column, DictionaryColumn

Floats = NDArray[np.float64]
TABLE_COLUMNS = {
    "turns": ("turn", "at", "station", "taken", "made", "cost", "policy"),
    "arrivals": ("at", "stream", "rows", "lag"),
    "outputs": ("at", "query", "arrived", "rows"),
    "memory": ("at", "held", "held_bytes"),
    "bound": ("at", "tuples"),  # the least that had to be held from the row before up to this instant
    "phases": ("at", "policy", "reason"),
}
INTEGER_COLUMNS = ("turn", "rows")
NAME_COLUMNS = ("station", "stream", "query", "policy", "reason")


class NameDictionary:
    """Numbers names in the order of their first use."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def texts(self, codes: Floats) -> DictionaryColumn:
        return DictionaryColumn(codes.astype(np.int64), list(self._codes))


class RowBuffer:
    """Collects rows as numbers in one list, packs them into arrays from time to time, and returns columns to write."""

    def __init__(self) -> None:
        self.names = {column: NameDictionary() for column in NAME_COLUMNS}
        self.steps: list[float] = []  # rows of turns, one after the other: a tuple each would take twice the time
        self.arrivals: list[float] = []
        self.phases: list[float] = []
        self.bound: list[float] = []
        self._done: dict[str, list[Floats]] = {table: [] for table in TABLE_COLUMNS}

    def add(self, table: str, *columns: Floats | NDArray[np.int64]) -> None:
        """Add rows given as columns."""
        if len(columns[0]):
            self._done[table].append(np.column_stack(columns).astype(np.float64, copy=False))

    def flush(self) -> int:
        """Pack the lists into arrays; return the number of rows of the longest table."""
        lists = {"turns": self.steps, "arrivals": self.arrivals, "phases": self.phases, "bound": self.bound}
        for table, rows in lists.items():
            if rows:
                self._done[table].append(np.array(rows, dtype=np.float64).reshape(-1, len(TABLE_COLUMNS[table])))
                rows.clear()
        return max(sum(map(len, parts)) for parts in self._done.values())

    def tables(self) -> Iterator[tuple[str, dict[str, Column]]]:
        """The columns of each table that has rows; the table is then empty."""
        self.flush()
        for table, parts in self._done.items():
            if parts:
                columns = np.concatenate(parts).T
                yield (
                    table,
                    {name: self._column(name, c) for name, c in zip(TABLE_COLUMNS[table], columns, strict=True)},
                )
                parts.clear()

    def clear(self) -> None:
        """Drop all rows."""
        self.flush()
        for parts in self._done.values():
            parts.clear()

    def _column(self, name: str, values: Floats) -> Column:
        if name in NAME_COLUMNS:
            return self.names[name].texts(values)
        if name == "held_bytes" and np.isnan(values).all():
            return None
        return values.astype(np.int64) if name in INTEGER_COLUMNS else np.ascontiguousarray(values)
