"""Where of two ways the one begins to be better than the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def crossover(xs: Sequence[float], differences: Sequence[float]) -> float:
    """Where a difference is first 0, between two places in a straight line; NaN if it never is."""
    for (x, one), (further, other) in pairwise(zip(xs, differences, strict=True)):
        if one == 0:
            return x
        if one * other <= 0:
            return x + (further - x) * one / (one - other)
    return math.nan
