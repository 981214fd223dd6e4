"""Draws the costs of the tuples of figures 12 and 13: mostly cheap at the fast operator, except for some outliers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TUPLES = 300
SELECTIVITY = 0.95
CHEAP, SLOW = (1.0, 0.2), (5.0, 1.0)  # mean and standard deviation in ms, at the first and the second operator
MIN_COST_MS = 0.05  # a normal distribution has no minimum, but a cost must be positive
PLACES = {  # where in the queue the outliers wait
    "spread": "outliers at random places",
    "block": "outliers in one run at a random place",
    "front": "outliers first in the queue",
    "end": "outliers last in the queue",
}


class BatchCosts(NamedTuple):
    """The cost in ms of every tuple of a batch."""

    first: list[float]  # at the operator that has outliers
    second: list[float]


def draw_costs(seed: int, batch: int, share: float, outlier_ms: float, places: str) -> BatchCosts:
    """Draw a batch's costs; with a greater share of outliers, the tuples of a smaller share stay outliers."""
    rng = np.random.default_rng([seed, batch])
    cheap, slow = (_normal(rng, *figures) for figures in (CHEAP, SLOW))
    outliers = _normal(rng, outlier_ms, 1.0)
    order, start = rng.permutation(TUPLES), rng.random()
    count = round(share * TUPLES)
    chosen = {
        "spread": order[:count],
        "block": int(start * (TUPLES - count + 1)) + np.arange(count),
        "front": np.arange(count),
        "end": np.arange(TUPLES - count, TUPLES),
    }[places]
    cheap[chosen] = outliers[chosen]
    return BatchCosts(cheap.tolist(), slow.tolist())


def mean_first(share: float, outlier_ms: float) -> float:
    """The mean cost at the first operator: all that a policy which knows only averages is given."""
    return (1 - share) * CHEAP[0] + share * outlier_ms


def _normal(rng: np.random.Generator, mean: float, deviation: float) -> Floats:
    return rng.normal(mean, deviation, TUPLES).clip(MIN_COST_MS)
