"""StatisticsView: summaries of every statistic of every object, in columns, updated in one numpy pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.errors import DsmsError, existing

Values = NDArray[np.float64]
FIGURES = ("average", "mean", "minimum", "maximum", "latest", "total")


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of one statistic of one object."""

    average: float  # weighted: new = w·old + (1 − w)·latest (Raindrop, eq. 3.1)
    mean: float  # unweighted
    minimum: float
    maximum: float
    count: int
    latest: float
    total: float


class StatisticColumn:
    """One statistic of all objects of a kind; NaN: no value yet."""

    __slots__ = ("average", "count", "latest", "maximum", "minimum", "total")

    def __init__(self, size: int) -> None:
        self.average, self.minimum, self.maximum, self.latest = (np.full(size, math.nan) for _ in range(4))
        self.total = np.zeros(size)
        self.count = np.zeros(size, np.int64)

    @property
    def mean(self) -> Values:
        return ratio(self.total, self.count)

    def add(self, values: Values, weight: float) -> None:
        """Add one value for each object; NaN: none for that object."""
        known = ~np.isnan(values)
        mixed = np.where(self.count > 0, weight * self.average + (1 - weight) * values, values)
        np.copyto(self.average, mixed, where=known)
        np.copyto(self.latest, values, where=known)
        np.add(self.total, values, out=self.total, where=known)
        self.count += known
        np.fmin(self.minimum, values, out=self.minimum)  # ignores NaN
        np.fmax(self.maximum, values, out=self.maximum)

    def summary(self, place: int) -> Summary | None:
        count = int(self.count[place])
        if not count:
            return None
        average, low, high, latest, total = (
            float(column[place]) for column in (self.average, self.minimum, self.maximum, self.latest, self.total)
        )
        return Summary(average, total / count, low, high, count, latest, total)


class StatisticsView:
    """The statistics under one policy, under all of them, or at this instant."""

    def __init__(
        self, names: Mapping[str, Sequence[str]], statistics: Mapping[str, Sequence[str]], weight: float
    ) -> None:
        self._places = {kind: {name: place for place, name in enumerate(mine)} for kind, mine in names.items()}
        self._names = names
        self._weight = weight
        self._columns = {
            kind: {name: StatisticColumn(len(mine)) for name in statistics.get(kind, ())}
            for kind, mine in names.items()
        }

    def declare(self, kind: str, statistic: str) -> None:
        """Add a statistic of this kind of object."""
        self._columns[kind][statistic] = StatisticColumn(len(self._names[kind]))

    def add(self, kind: str, statistic: str, values: Values) -> None:
        """Add one value for every object of a kind; NaN: none for that object."""
        self._columns[kind][statistic].add(values, self._weight)

    def columns(self, kind: str) -> dict[str, StatisticColumn]:
        """Return the statistics' columns of this kind of object."""
        return self._of(kind)

    def statistics(self, kind: str = "operator") -> list[str]:
        """Return the names of the statistics of this kind of object."""
        return list(self._of(kind))

    def summary(self, statistic: str, name: str, kind: str = "operator") -> Summary | None:
        """Return the summary of an object's statistic; None: no value yet."""
        column, places = self._column(kind, statistic), self._places[kind]
        if name not in places:
            raise DsmsError(f"no {kind} {name!r}{existing(name, places)}")
        return column.summary(places[name])

    def plan(self, statistic: str) -> Summary | None:
        """Return the summary of a statistic of the plan."""
        return self._column("plan", statistic).summary(0)

    def table(self, kind: str = "operator") -> dict[str, dict[str, Summary]]:
        """Return all summaries, nested: object -> statistic -> summary; unknown ones are left out."""
        return {
            name: {
                statistic: summary
                for statistic, column in self._of(kind).items()
                if (summary := column.summary(place)) is not None
            }
            for place, name in enumerate(self._names[kind])
        }

    def highest(self, statistic: str, kind: str = "operator", by: str = "average") -> str | None:
        """Return the object with the highest figure, for example the highest output rate."""
        return self._extreme(statistic, kind, by, 1)

    def lowest(self, statistic: str, kind: str = "operator", by: str = "average") -> str | None:
        """Return the object with the lowest figure."""
        return self._extreme(statistic, kind, by, -1)

    def maximum(self, statistic: str, kind: str = "operator") -> float | None:
        """Return the highest value of any object of the kind so far."""
        return _none_if_nan(np.fmax.reduce(self._column(kind, statistic).maximum))

    def minimum(self, statistic: str, kind: str = "operator") -> float | None:
        """Return the lowest value of any object of the kind so far."""
        return _none_if_nan(np.fmin.reduce(self._column(kind, statistic).minimum))

    def _extreme(self, statistic: str, kind: str, by: str, sign: int) -> str | None:
        if by not in FIGURES:
            raise DsmsError(f"no figure {by!r} of a statistic{existing(by, FIGURES)}")
        column = self._column(kind, statistic)
        if not column.count.any():
            return None
        figures = np.where(column.count > 0, sign * getattr(column, by), -math.inf)
        return self._names[kind][int(np.argmax(figures))]

    def _of(self, kind: str) -> dict[str, StatisticColumn]:
        if kind not in self._columns:
            raise DsmsError(f"no kind of object {kind!r}{existing(kind, self._columns)}")
        return self._columns[kind]

    def _column(self, kind: str, statistic: str) -> StatisticColumn:
        columns = self._of(kind)
        if statistic not in columns:
            raise DsmsError(f"no {kind} statistic {statistic!r}{existing(statistic, columns)}")
        return columns[statistic]


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def ratio(above: Values, below: NDArray[Any]) -> Values:
    """Return the quotients; NaN where the divisor is 0."""
    found = np.full(len(above), math.nan)
    np.divide(above, below, out=found, where=below > 0)
    return found
