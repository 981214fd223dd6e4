"""Estimates a mean and its 95 % confidence interval from a few samples, by Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Student's t at 97.5 %, by degrees of freedom; from ten on the expansion below is exact to four digits.
STUDENT_T_TABLE = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)
NORMAL_QUANTILE = 1.959964


class MeanInterval(NamedTuple):
    """A mean and half the width of its interval; None where there are too few samples."""

    mean: float | None
    half: float | None = None


def student_t(freedom: int) -> float:
    """Half the width of a 95 % interval, in standard errors."""
    if freedom <= len(STUDENT_T_TABLE):
        return STUDENT_T_TABLE[freedom - 1]
    z, n = NORMAL_QUANTILE, freedom
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / n + second / n**2 + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)


def estimate_mean(samples: Sequence[float | None], mean: float | None = None) -> MeanInterval:
    """The mean of the samples that are not None, or the `mean` given, and its interval."""
    known = np.array([sample for sample in samples if sample is not None], dtype=np.float64)
    middle = mean if mean is not None else float(known.mean()) if len(known) else None
    if len(known) < 2 or middle is None:
        return MeanInterval(middle)
    return MeanInterval(middle, student_t(len(known) - 1) * float(known.std(ddof=1)) / math.sqrt(len(known)))
