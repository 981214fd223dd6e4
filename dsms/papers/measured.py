"""What a sweep has measured: a row for each point, asked by parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dsms.errors import DsmsError


class Row(NamedTuple):
    """One run: what was set, and what came of it; a figure is a number, None, or a list of numbers."""

    point: Mapping[str, Any]
    figures: Mapping[str, Any]


class Measured:
    """Rows of one experiment."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)

    def where(self, **wanted: Any) -> Measured:
        """The rows whose parameters are these."""
        return Measured(row for row in self.rows if wanted.items() <= row.point.items())

    def values(self, parameter: str) -> list[Any]:
        """The different values that a parameter has, in ascending order."""
        return sorted({row.point[parameter] for row in self.rows if parameter in row.point})

    def value(self, figure: str, **wanted: Any) -> float:
        """A figure's mean over the rows with these parameters; NaN where it does not exist."""
        found = self.where(**wanted).rows
        if not found:
            raise DsmsError(f"{figure!r} of {wanted}: nothing was measured there; {self._there(wanted)}")
        numbers = [row.figures[figure] for row in found]
        return math.nan if None in numbers else float(np.mean(numbers))

    def line(self, figure: str, over: str, **wanted: Any) -> tuple[list[float], list[float]]:
        """A figure's means over the values of a parameter."""
        mine = self.where(**wanted)
        places = mine.values(over)
        return places, [mine.value(figure, **{over: place}) for place in places]

    def series(self, figure: str, **wanted: Any) -> list[float]:
        """A figure that is a list, of the first row with these parameters."""
        found = self.where(**wanted).rows
        if not found:
            raise DsmsError(f"{figure!r} of {wanted}: nothing was measured there; {self._there(wanted)}")
        return list(found[0].figures[figure])

    def by_seed(self) -> list[Measured]:
        """The same for each seed."""
        return [self.where(seed=seed) for seed in self.values("seed")]

    def _there(self, wanted: Mapping[str, Any]) -> str:
        return "there are " + ", ".join(f"{name} in {self.values(name)}" for name in wanted)
