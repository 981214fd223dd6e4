"""Finds the parameter value at which two alternatives are equal, by linear interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def crossover(xs: Sequence[float], differences: Sequence[float]) -> float:
    """The first x at which the difference is 0, interpolated linearly between two points; NaN if there is none."""
    for (x, difference), (next_x, next_difference) in pairwise(zip(xs, differences, strict=True)):
        if difference == 0:
            return x
        if difference * next_difference <= 0:
            return x + (next_x - x) * difference / (difference - next_difference)
    return math.nan
