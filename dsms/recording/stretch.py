"""What has happened since parts were last written: one table of numbers for each thing that is recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dsms.files.parts import Column, Texts

Floats = NDArray[np.float64]
TABLES = {
    "turns": ("turn", "at", "station", "taken", "made", "cost", "policy"),
    "arrivals": ("at", "stream", "rows", "lag"),
    "outputs": ("at", "query", "arrived", "rows"),
    "memory": ("at", "held", "held_bytes"),
    "bound": ("at", "tuples"),  # the least that had to be held from the row before up to this instant
    "phases": ("at", "policy", "reason"),
}
WHOLE = ("turn", "rows")
NAMED = ("station", "stream", "query", "policy", "reason")


class Names:
    """Names by the order in which they first came up."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def texts(self, codes: Floats) -> Texts:
        return Texts(codes.astype(np.int64), list(self._codes))


class Stretch:
    """Rows as numbers in one list while they come, as arrays from time to time, as columns when they are written."""

    def __init__(self) -> None:
        self.names = {column: Names() for column in NAMED}
        self.steps: list[float] = []  # rows of turns, one after the other: a tuple each would take twice the time
        self.arrivals: list[float] = []
        self.phases: list[float] = []
        self.bound: list[float] = []
        self._done: dict[str, list[Floats]] = {table: [] for table in TABLES}

    def add(self, table: str, *columns: Floats | NDArray[np.int64]) -> None:
        """Rows that have come in columns."""
        if len(columns[0]):
            self._done[table].append(np.column_stack(columns).astype(np.float64, copy=False))

    def settle(self) -> int:
        """Make arrays of what has come as numbers; answers how many rows the longest table has."""
        lists = {"turns": self.steps, "arrivals": self.arrivals, "phases": self.phases, "bound": self.bound}
        for table, rows in lists.items():
            if rows:
                self._done[table].append(np.array(rows, dtype=np.float64).reshape(-1, len(TABLES[table])))
                rows.clear()
        return max(sum(map(len, parts)) for parts in self._done.values())

    def tables(self) -> Iterator[tuple[str, dict[str, Column]]]:
        """The columns of each table that has rows; it then begins anew."""
        self.settle()
        for table, parts in self._done.items():
            if parts:
                columns = np.concatenate(parts).T
                yield table, {name: self._column(name, c) for name, c in zip(TABLES[table], columns, strict=True)}
                parts.clear()

    def clear(self) -> None:
        """Forget all that has come."""
        self.settle()
        for parts in self._done.values():
            parts.clear()

    def _column(self, name: str, values: Floats) -> Column:
        if name in NAMED:
            return self.names[name].texts(values)
        if name == "held_bytes" and np.isnan(values).all():
            return None
        return values.astype(np.int64) if name in WHOLE else np.ascontiguousarray(values)
