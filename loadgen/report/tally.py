"""The sums and maxima of a run by cell, combined into the figures of any set of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.report.periods import RecordedRun

Column = NDArray[np.float64]
Places = NDArray[np.int64]
SUM_COLUMNS = ("held", "held_bytes", "bound", "rows", "latency", "stale", "arrived")
MAX_COLUMNS = ("most", "most_bytes", "longest")
OPTIONAL_COLUMNS = ("held_bytes", "bound", "most_bytes", "longest")  # NaN in cells without a value, not 0
Figures = dict[str, Any]


@dataclass
class RunCells:
    """Columns with one value for each cell of a run; NaN is unknown."""

    run: RecordedRun
    columns: dict[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cells = self.run.cells
        for name in (*SUM_COLUMNS, *MAX_COLUMNS):
            self.columns[name] = np.full(len(cells), np.nan if name in OPTIONAL_COLUMNS else 0.0)
        self._spans = np.array([cell.until - cell.since for cell in cells])
        self.window = np.array([cell.window for cell in cells])
        self.phase = np.array([cell.phase for cell in cells])

    def put(self, name: str, cells: Sequence[int], values: Sequence[float | None]) -> None:
        """Set the values of some cells."""
        self.columns[name][np.asarray(cells, np.int64)] = np.array(values, dtype=np.float64)

    def whole(self) -> Figures:
        """The figures of all cells."""
        return self.over(np.arange(len(self._spans)))

    def over(self, places: Places) -> Figures:
        """The figures of some cells together; None where there is no value."""
        span, queries = float(self._spans[places].sum()), len(self.run.queries)
        sums = {name: float(np.nansum(self.columns[name][places])) for name in SUM_COLUMNS}
        known = places[np.isfinite(self.columns["bound"][places])]  # memory is compared with the bound only there
        least = _ratio(sums["bound"], float(self._spans[known].sum()))
        mean = _ratio(float(self.columns["held"][known].sum()), float(self._spans[known].sum()))
        maxima = {name: _max(self.columns[name][places]) for name in MAX_COLUMNS}
        return {
            "seconds": span,
            "arrived": round(sums["arrived"]),
            "results": round(sums["rows"]),
            "memory_mean": _ratio(sums["held"], span),
            "memory_max": maxima["most"],
            "bound_mean": least,
            "gap_mean": None if least is None or mean is None else mean - least,
            "bytes_mean": None if maxima["most_bytes"] is None else _ratio(sums["held_bytes"], span),
            "bytes_max": maxima["most_bytes"],
            "latency_mean": _ratio(sums["latency"], sums["rows"]),
            "latency_max": maxima["longest"],
            "staleness": _ratio(sums["stale"], span * queries),
            "output_rate": _ratio(sums["rows"], span),
        }


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


def _max(values: Column) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None
