"""What was added up by cell, put together for any stretch of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.report.periods import Run

Column = NDArray[np.float64]
Places = NDArray[np.int64]
SUMS = ("held", "held_bytes", "bound", "rows", "latency", "stale", "arrived")
MOSTS = ("most", "most_bytes", "longest")
UNKNOWN = ("held_bytes", "bound", "most_bytes", "longest")  # unless it is put
Figures = dict[str, Any]


@dataclass
class Tally:
    """A run's columns, a value for each of its cells; nan is what is not known."""

    run: Run
    columns: dict[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cells = self.run.cells
        for name in (*SUMS, *MOSTS):
            self.columns[name] = np.full(len(cells), np.nan if name in UNKNOWN else 0.0)
        self._spans = np.array([cell.until - cell.since for cell in cells])
        self.window = np.array([cell.window for cell in cells])
        self.phase = np.array([cell.phase for cell in cells])

    def put(self, name: str, cells: Sequence[int], values: Sequence[float | None]) -> None:
        """Values of some cells."""
        self.columns[name][np.asarray(cells, np.int64)] = np.array(values, dtype=np.float64)

    def whole(self) -> Figures:
        """The figures of all cells."""
        return self.over(np.arange(len(self._spans)))

    def over(self, places: Places) -> Figures:
        """The figures of some cells taken together; what does not exist is None."""
        span, queries = float(self._spans[places].sum()), len(self.run.queries)
        sums = {name: float(np.nansum(self.columns[name][places])) for name in SUMS}
        known = places[np.isfinite(self.columns["bound"][places])]  # where it is, that is compared with what was held
        least = _ratio(sums["bound"], float(self._spans[known].sum()))
        mean = _ratio(float(self.columns["held"][known].sum()), float(self._spans[known].sum()))
        mosts = {name: _most(self.columns[name][places]) for name in MOSTS}
        return {
            "seconds": span,
            "arrived": round(sums["arrived"]),
            "results": round(sums["rows"]),
            "memory_mean": _ratio(sums["held"], span),
            "memory_max": mosts["most"],
            "bound_mean": least,
            "gap_mean": None if least is None or mean is None else mean - least,
            "bytes_mean": None if mosts["most_bytes"] is None else _ratio(sums["held_bytes"], span),
            "bytes_max": mosts["most_bytes"],
            "latency_mean": _ratio(sums["latency"], sums["rows"]),
            "latency_max": mosts["longest"],
            "staleness": _ratio(sums["stale"], span * queries),
            "output_rate": _ratio(sums["rows"], span),
        }


def _ratio(over: float, under: float) -> float | None:
    return over / under if under else None


def _most(values: Column) -> float | None:
    there = values[np.isfinite(values)]
    return float(there.max()) if len(there) else None
