"""What the tuples of figures 12 and 13 cost: at the fast operator most are cheap, some dear; and where these wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TUPLES = 300
SELECTIVITY = 0.95
CHEAP, SLOW = (1.0, 0.2), (5.0, 1.0)  # mean and deviation in ms, at the first operator and at the second
LEAST = 0.05  # ms: a normal distribution has no least cost, a tuple must have one
PLACES = {
    "spread": "outliers at random places",
    "block": "outliers in one run at a random place",
    "front": "outliers first in the queue",
    "end": "outliers last in the queue",
}


class Costs(NamedTuple):
    """Of every tuple at the operator that has outliers, and at the other."""

    first: list[float]
    second: list[float]


def draw(seed: int, batch: int, share: float, dear: float, places: str) -> Costs:
    """The same numbers for every share: with more outliers, those of before are still among them."""
    rng = np.random.default_rng([seed, batch])
    cheap, slow = (_normal(rng, *figures) for figures in (CHEAP, SLOW))
    outliers = _normal(rng, dear, 1.0)
    order, start = rng.permutation(TUPLES), rng.random()
    count = round(share * TUPLES)
    chosen = {
        "spread": order[:count],
        "block": int(start * (TUPLES - count + 1)) + np.arange(count),
        "front": np.arange(count),
        "end": np.arange(TUPLES - count, TUPLES),
    }[places]
    cheap[chosen] = outliers[chosen]
    return Costs(cheap.tolist(), slow.tolist())


def mean_first(share: float, dear: float) -> float:
    """What a tuple costs at the first operator on average: all that a policy by averages knows."""
    return (1 - share) * CHEAP[0] + share * dear


def _normal(rng: np.random.Generator, mean: float, deviation: float) -> Floats:
    return rng.normal(mean, deviation, TUPLES).clip(LEAST)
