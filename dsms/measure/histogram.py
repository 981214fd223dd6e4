"""Histogram: counts observations in buckets with fixed edges, sums them, and estimates quantiles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

LOWEST_EDGE_S, HIGHEST_EDGE_S = 1e-6, 1e5  # values below and above have a bucket each
BUCKETS_PER_DECADE = 20  # a quantile is at most 12 % off
LOG_EDGES_S: tuple[float, ...] = tuple(
    np.geomspace(
        LOWEST_EDGE_S, HIGHEST_EDGE_S, round(np.log10(HIGHEST_EDGE_S / LOWEST_EDGE_S)) * BUCKETS_PER_DECADE + 1
    ).tolist()
)
BUCKET_COUNT = len(LOG_EDGES_S) + 1
BUCKET_EDGES_S = np.array([0.0, *LOG_EDGES_S, HIGHEST_EDGE_S])  # bucket i is from edge i to edge i + 1
EDGE_TOLERANCE = 1e-10  # a value that rounding puts this little above an edge counts as on it


class Histogram:
    """One count per bucket: a bucket is above the edge before it, and up to its own; the last one has no upper edge."""

    __slots__ = ("_limits", "counts", "edges", "total")

    def __init__(self, edges: Sequence[float] = LOG_EDGES_S) -> None:
        self.edges = tuple(edges)
        self._limits = _widen(edges).tolist()
        self.counts = [0] * (len(self.edges) + 1)
        self.total = 0.0  # sum of all observations

    def add(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self._limits, value)] += 1
        self.total += value

    def add_all(self, values: NDArray[np.float64], repeats: NDArray[np.int64]) -> None:
        """Count many observations, each as often as `repeats` says."""
        added = np.bincount(np.searchsorted(self._limits, values), repeats, len(self.counts)).astype(np.int64)
        self.counts = [count + more for count, more in zip(self.counts, added.tolist(), strict=True)]
        self.total += float((values * repeats).sum())

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        """The exact mean; None: nothing was observed."""
        return self.total / self.count if self.count else None

    def quantile(self, part: float) -> float | None:
        """Estimate the value that this part of the observations does not exceed; None: nothing was observed."""
        return quantile(self.counts, part, np.array([0.0, *self.edges, self.edges[-1]]))

    def to_sample(self) -> tuple[list[int], float]:
        """Return the counts and the sum, as a metric's sample has them."""
        return list(self.counts), self.total


class HistogramTable:
    """Histograms of one set of edges, a row each, filled together."""

    def __init__(self, rows: int, edges: Sequence[float]) -> None:
        self._limits = _widen(edges)
        self._counts: NDArray[np.int64] = np.zeros((rows, len(edges) + 1), np.int64)
        self._totals: NDArray[np.float64] = np.zeros(rows)

    def add_all(self, rows: NDArray[np.int64], values: NDArray[np.float64], repeats: NDArray[np.int64]) -> None:
        """Count observations in these rows, each as often as `repeats` says."""
        np.add.at(self._counts, (rows, np.searchsorted(self._limits, values)), repeats)
        self._totals += np.bincount(rows, values * repeats, len(self._totals))

    def copy_row(self, row: int, source: HistogramTable, source_row: int) -> None:
        """Take over another table's row."""
        self._counts[row], self._totals[row] = source._counts[source_row], source._totals[source_row]

    def to_sample(self, row: int) -> tuple[list[int], float]:
        """Return a row's counts and sum, as a metric's sample has them."""
        return self._counts[row].tolist(), float(self._totals[row])


def find_buckets(latencies: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return each latency's bucket on the logarithmic scale."""
    places: NDArray[np.int64] = np.searchsorted(_LOG_LIMITS_S, latencies)
    return places


def quantile(counts: ArrayLike, part: float, edges: NDArray[np.float64] = BUCKET_EDGES_S) -> float | None:
    """Estimate a quantile from bucket counts; observations are taken to be spread evenly inside a bucket."""
    column = np.asarray(counts, np.float64)
    cumulative = np.cumsum(column)
    if not cumulative[-1]:
        return None
    rank = part * cumulative[-1]
    place = int(np.searchsorted(cumulative, rank))
    inside = (rank - (cumulative[place] - column[place])) / column[place] if column[place] else 0.0
    return float(edges[place] + (edges[place + 1] - edges[place]) * inside)


def summarise(counts: NDArray[np.float64], total: float) -> dict[str, float | None]:
    """Return mean, median and 99th percentile of what was counted; `total` is the exact sum."""
    count = float(counts.sum())
    return {
        "mean": float(total) / count if count else None,
        "p50": quantile(counts, 0.5),
        "p99": quantile(counts, 0.99),
    }


def _widen(edges: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(edges, np.float64) * (1 + EDGE_TOLERANCE)


_LOG_LIMITS_S = _widen(LOG_EDGES_S)
