"""Means with 95 % confidence intervals, of a few samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Student's t at 97.5 %, by degrees of freedom; from ten on the expansion below is good to four digits.
SMALL = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)
NORMAL = 1.959964


class Estimate(NamedTuple):
    """A mean and half the width of its interval; None where it cannot be told."""

    mean: float | None
    half: float | None = None


def student(freedom: int) -> float:
    """How many standard errors a 95 % interval reaches to either side."""
    if freedom <= len(SMALL):
        return SMALL[freedom - 1]
    z, n = NORMAL, freedom
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / n + second / n**2 + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)


def estimate(samples: Sequence[float | None], mean: float | None = None) -> Estimate:
    """The mean of these samples (or the one that is given, around which they lie), those that exist."""
    there = np.array([sample for sample in samples if sample is not None], dtype=np.float64)
    middle = mean if mean is not None else float(there.mean()) if len(there) else None
    if len(there) < 2 or middle is None:
        return Estimate(middle)
    return Estimate(middle, student(len(there) - 1) * float(there.std(ddof=1)) / math.sqrt(len(there)))
