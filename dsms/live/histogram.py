"""How late results were, in buckets on a logarithmic scale: little memory, however many they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST, MOST = 1e-6, 1e5  # seconds; what is below or above has a bucket of its own
DECADE = 20  # buckets a decade: a quantile is at most 12 % off
BUCKETS = round(np.log10(MOST / LEAST)) * DECADE + 2
EDGES = np.concatenate(([0.0], np.geomspace(LEAST, MOST, BUCKETS - 1), [MOST]))  # bucket i is from edge i to i + 1


def buckets(latencies: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bucket of each: it is above the lower edge, and at most the upper."""
    above = np.log10(np.maximum(latencies, LEAST) / LEAST) * DECADE
    # What is on an edge may come out a little above it.
    places: NDArray[np.int64] = np.minimum(np.ceil(above - 1e-9), BUCKETS - 1).astype(np.int64)
    return places


def quantile(counts: NDArray[np.float64], part: float) -> float | None:
    """So large a part of what was counted is at most this; inside a bucket all are taken to be spread evenly."""
    upto = np.cumsum(counts)
    if not upto[-1]:
        return None
    wanted = part * upto[-1]
    place = int(np.searchsorted(upto, wanted))
    inside = (wanted - (upto[place] - counts[place])) / counts[place] if counts[place] else 0.0
    return float(EDGES[place] + (EDGES[place + 1] - EDGES[place]) * inside)


def figures(counts: NDArray[np.float64], total: float) -> dict[str, float | None]:
    """Mean, median and 99th percentile of what was counted; `total` is the exact sum of it."""
    many = float(counts.sum())
    return {
        "mean": float(total) / many if many else None,
        "p50": quantile(counts, 0.5),
        "p99": quantile(counts, 0.99),
    }
