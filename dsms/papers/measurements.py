"""A table of measured runs, one row per point of a sweep, queried by parameter values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dsms.errors import DsmsError


class MeasuredPoint(NamedTuple):
    """One run: its parameters and its measured figures; a figure is a number, None, or a list of numbers."""

    point: Mapping[str, Any]
    figures: Mapping[str, Any]


class Measurements:
    """The measured runs of one experiment."""

    def __init__(self, rows: Iterable[MeasuredPoint]) -> None:
        self.rows = tuple(rows)

    def where(self, **conditions: Any) -> Measurements:
        """The rows that have these parameter values."""
        return Measurements(row for row in self.rows if conditions.items() <= row.point.items())

    def values(self, parameter: str) -> list[Any]:
        """The distinct values of a parameter, in ascending order."""
        return sorted({row.point[parameter] for row in self.rows if parameter in row.point})

    def value(self, figure: str, **conditions: Any) -> float:
        """A figure's mean over the rows with these parameters; NaN if a row has None."""
        numbers = [row.figures[figure] for row in self._rows(figure, conditions)]
        return math.nan if None in numbers else float(np.mean(numbers))

    def line(self, figure: str, over: str, **conditions: Any) -> tuple[list[float], list[float]]:
        """The values of the parameter `over`, and the figure's mean at each."""
        rows = self.where(**conditions)
        xs = rows.values(over)
        return xs, [rows.value(figure, **{over: x}) for x in xs]

    def series(self, figure: str, **conditions: Any) -> list[float]:
        """A figure that is a list, from the first row with these parameters."""
        return list(self._rows(figure, conditions)[0].figures[figure])

    def by_seed(self) -> list[Measurements]:
        """The rows of each seed."""
        return [self.where(seed=seed) for seed in self.values("seed")]

    def _rows(self, figure: str, conditions: Mapping[str, Any]) -> tuple[MeasuredPoint, ...]:
        rows = self.where(**conditions).rows
        if not rows:
            measured = ", ".join(f"{name} in {self.values(name)}" for name in conditions)
            raise DsmsError(f"{figure!r} of {conditions}: not measured; there are {measured}")
        return rows
