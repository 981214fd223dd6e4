"""Numbers for the Chain paper's words ("far better", "nearly as bad"), since our copy has lost its figures.

The functions compare policies on each data set; claims use the less favourable of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dsms.papers.chain.data import REAL, SYNTHETIC
from dsms.papers.claim import Figure, band_from, band_up_to
from dsms.papers.measurements import Measurements

EQUAL = band_up_to(0.01)  # "the same": no more than a hundredth apart
ALMOST = band_up_to(0.25)  # "almost as good": within the first quarter of the way from Chain to FIFO
ALMOST_DIRECTION = band_up_to(0.5)
FAR = band_from(1.5)  # "bad", "much worse", "far better", "by a wide margin": half as much again, or more
FAR_DIRECTION = band_from(1.05)
AS_BAD = (0.7, 1.1)  # "nearly as bad as": from 30 % less to 10 % more

MEANT = {
    "far": "Taken to mean 1.5 times the mean memory or more, on the data set where the ratio is smaller.",
    "almost": "Taken to mean: a quarter of the way from Chain to FIFO or less, in mean memory, on both data sets.",
    "as bad": "Taken to mean 0.7 to 1.1 times the mean memory, on the data set where the ratio is farther from 1.",
    "equal": "Taken to mean: less than 1 % apart in mean memory, on both data sets.",
}

OneSet = Callable[[Measurements, dict[str, Any]], float]  # a figure of the data set that the dict selects


def over(policy: str, base: str, figure: str = "mean") -> OneSet:
    """A policy's memory over that of another."""
    return lambda measured, at: measured.value(figure, policy=policy, **at) / measured.value(figure, policy=base, **at)


def over_others(policy: str, figure: str = "mean") -> OneSet:
    """A policy's memory over that of the worst other policy."""
    others = {"fifo", "rr", "greedy", "chain"} - {policy}
    return lambda measured, at: min(over(policy, other, figure)(measured, at) for other in others)


def way(policy: str, figure: str = "mean") -> OneSet:
    """A policy's position between Chain (0) and FIFO (1), by memory."""

    def share(measured: Measurements, at: dict[str, Any]) -> float:
        chain, fifo = (measured.value(figure, policy=name, **at) for name in ("chain", "fifo"))
        memory = measured.value(figure, policy=policy, **at)
        return (memory - chain) / (fifo - chain) if fifo != chain else math.nan

    return share


def best_of_others(figure: str = "mean") -> OneSet:
    """The memory of the best other policy over Chain's."""
    return lambda measured, at: min(over(policy, "chain", figure)(measured, at) for policy in ("fifo", "rr", "greedy"))


def least(of: OneSet, **at: Any) -> Figure:
    """The smaller value of the two data sets."""
    return lambda measured: min(_each(of, measured, at))


def most(of: OneSet, **at: Any) -> Figure:
    """The greater value of the two data sets."""
    return lambda measured: max(_each(of, measured, at))


def farthest(of: OneSet, **at: Any) -> Figure:
    """The ratio of the two data sets that is farther from 1, up or down."""
    return lambda measured: max(_each(of, measured, at), key=lambda ratio: abs(math.log(ratio)))


def apart(policy: str, base: str, **at: Any) -> Figure:
    """The relative difference of two policies' memory, the greater of both data sets."""
    return lambda measured: max(abs(ratio - 1) for ratio in _each(over(policy, base), measured, at))


def only(of: OneSet, data: str, **at: Any) -> Figure:
    """The value of one data set."""
    return lambda measured: of(measured, {"data": data, **at})


def _each(of: OneSet, measured: Measurements, at: dict[str, Any]) -> list[float]:
    return [of(measured, {"data": kind, **at}) for kind in (SYNTHETIC, *REAL) if measured.where(data=kind, **at).rows]
