"""What the paper's words are taken to mean in numbers, since its figures cannot be read off.

Each is a function of what was measured, over both data sets: the less favourable of the two counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dsms.papers.chain.data import REAL, SYNTHETIC
from dsms.papers.claim import Figure, at_least, at_most
from dsms.papers.measured import Measured

EQUAL = at_most(0.01)  # "the same": no more than a hundredth apart
ALMOST = at_most(0.25)  # "almost as good": within the first quarter of the way from Chain to FIFO
ALMOST_DIRECTION = at_most(0.5)
FAR = at_least(1.5)  # "bad", "much worse", "far better", "by a wide margin": half as much again, or more
FAR_DIRECTION = at_least(1.05)
AS_BAD = (0.7, 1.1)  # "nearly as bad as": from 30 % less to 10 % more

MEANT = {
    "far": "Taken to mean 1.5 times as much memory on average, or more; of both data sets the one with less counts.",
    "almost": "Taken to mean: a quarter of the way from Chain to FIFO or less, in mean memory, on either data set.",
    "as bad": "Taken to mean 0.7 to 1.1 times as much on average; of both data sets the one that is farther from 1.",
    "equal": "Taken to mean: less than 1 % apart in mean memory, on either data set.",
}

OneSet = Callable[[Measured, dict[str, Any]], float]


def over(policy: str, base: str, figure: str = "mean") -> OneSet:
    """So many times the memory of another policy."""
    return lambda measured, at: measured.value(figure, policy=policy, **at) / measured.value(figure, policy=base, **at)


def over_others(policy: str, figure: str = "mean") -> OneSet:
    """So many times the memory of whoever of the others needs most."""
    others = {"fifo", "rr", "greedy", "chain"} - {policy}
    return lambda measured, at: min(over(policy, other, figure)(measured, at) for other in others)


def way(policy: str, figure: str = "mean") -> OneSet:
    """How far a policy is on the way from Chain to FIFO."""

    def share(measured: Measured, at: dict[str, Any]) -> float:
        chain, fifo = (measured.value(figure, policy=name, **at) for name in ("chain", "fifo"))
        mine = measured.value(figure, policy=policy, **at)
        return (mine - chain) / (fifo - chain) if fifo != chain else math.nan

    return share


def best_of_others(figure: str = "mean") -> OneSet:
    """The best other policy's memory, by Chain's."""
    return lambda measured, at: min(over(policy, "chain", figure)(measured, at) for policy in ("fifo", "rr", "greedy"))


def least(of: OneSet, **at: Any) -> Figure:
    return lambda measured: min(_each(of, measured, at))


def most(of: OneSet, **at: Any) -> Figure:
    return lambda measured: max(_each(of, measured, at))


def farthest(of: OneSet, **at: Any) -> Figure:
    """From 1, up or down."""
    return lambda measured: max(_each(of, measured, at), key=lambda ratio: abs(math.log(ratio)))


def apart(policy: str, base: str, **at: Any) -> Figure:
    """By which share two policies differ."""
    return lambda measured: max(abs(ratio - 1) for ratio in _each(over(policy, base), measured, at))


def only(of: OneSet, data: str, **at: Any) -> Figure:
    """On one data set."""
    return lambda measured: of(measured, {"data": data, **at})


def _each(of: OneSet, measured: Measured, at: dict[str, Any]) -> list[float]:
    return [of(measured, {"data": kind, **at}) for kind in (SYNTHETIC, *REAL) if measured.where(data=kind, **at).rows]
