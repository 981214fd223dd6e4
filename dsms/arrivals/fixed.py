"""Arrivals at given instants, or evenly spaced."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dsms.arrivals.process import Arrivals, Floats


class ListedArrivals(Arrivals):
    """Arrivals at listed instants, from a plan or a file; an empty list for pushed streams."""

    def __init__(self, at: Floats, carries: Mapping[str, Floats], until: float = math.inf) -> None:
        at = at[: np.searchsorted(at, until)]
        span = float(at[-1] - at[0]) if len(at) else 0.0
        super().__init__(len(at) / span if span else max(1.0, len(at)), {k: v[: len(at)] for k, v in carries.items()})
        self._at = at
        self._until = math.nextafter(at[-1], math.inf) if len(at) else 0.0

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        low, high = np.searchsorted(self._at, (start, stop))
        return int(low), self._at[low:high]


class ConstantRate(Arrivals):
    """Evenly spaced arrivals; each instant is a product, so that rounding errors do not add up."""

    def __init__(self, every: float) -> None:
        super().__init__(1 / every)
        self._every = every

    def _run(self, start: float, stop: float) -> tuple[int, Floats]:
        first = int(max(0.0, start) / self._every)
        last = int(max(0.0, stop) / self._every) + 1
        return first, np.arange(first, last + 1, dtype=np.float64) * self._every
