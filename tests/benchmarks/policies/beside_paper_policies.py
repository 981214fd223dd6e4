"""Compares our policies with the papers' on cases that no policy was tuned on, in virtual time.

A run's score is J = Σ w·c/c*: c its mean queued tuples, mean delay and 1/rate, c* the best that round robin, FIFO, MTIQ
or Chain reach in that measure on that case. Its gain is J of the best of the four, chosen in hindsight, over its own J,
less 1. Runs are drained, a turn is one tuple at one operator for all; with a start-up cost it is a slice for all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from benchmarks.policies.cases import PATTERNS, WEIGHTINGS, PlanCase, Weights, make_cases
from benchmarks.policies.wrong_statistics import MisledPolicy
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dsms.config.qos import Qos
from dsms.policies.registry import policy_named
from dsms.simulation import simulate

SEED, PLANS = 3, 20
LONG, SHORT = 2000, 800  # arrivals: of a policy by itself; where others are run ahead all the time
FOUR = ("rr", "fifo", "mtiq", "chain")
STARTUP, SLICE = 3.0, 100.0  # in mean operator costs: of a full turn a start-up is a thirtieth
STATISTICS_ERROR = 0.3
GAIN_MIN = 0.01

Costs = NDArray[np.float64]  # mean queued tuples, mean delay, 1/rate


class Contender(NamedTuple):
    """A contender: whether it goes by the weighting, and how wrong the statistics are that it is told."""

    policy: str
    by_qos: bool = True
    error: float = 0.0


class Gain(NamedTuple):
    """How much better than the best of the four a contender was on one case, by its parts."""

    case: PlanCase
    weights: Weights
    gain: float


WHEEL = "chain+fifo+mtiq+rr"
BOTH = "predictive over them and qos-chain"
AHEAD = "adaptive:select=predictive,horizon=4"
PREDICTIVE = {
    "predictive over the four": Contender(f"{AHEAD},candidates={WHEEL}"),
    BOTH: Contender(f"{AHEAD},candidates=qos-chain+{WHEEL}"),
}
PLAIN = {
    **{name: Contender(name, by_qos=False) for name in FOUR},
    "roulette over the four": Contender(f"adaptive:select=roulette,candidates={WHEEL}"),
    "best score of the four": Contender(f"adaptive:select=best,candidates={WHEEL}"),
    "qos-chain": Contender("qos-chain"),
    f"qos-chain told {STATISTICS_ERROR:.0%} wrong": Contender("qos-chain", error=STATISTICS_ERROR),
}


@dataclass
class Bench:
    """One plan: each policy is run on it once, whatever the weightings it stands for."""

    case: PlanCase
    startup: float = 0.0
    span: float | None = None

    def __post_init__(self) -> None:
        self.plan = self.case.plan(self.startup, self.span)
        self.costs = cache(self._costs)
        self._four = [self.costs(Contender(name, by_qos=False)) for name in FOUR]
        self._best: Costs = np.min(self._four, axis=0)

    def gain(self, entry: Contender, weights: Weights) -> Gain:
        costs = self.costs(entry, weights if entry.by_qos else None)
        hindsight = min(self._score(mine, weights) for mine in self._four)
        return Gain(self.case, weights, hindsight / self._score(costs, weights) - 1)

    def _score(self, costs: Costs, weights: Weights) -> float:
        return float(np.dot(weights, costs / self._best))

    def _costs(self, entry: Contender, weights: Weights | None = None) -> Costs:
        plan, policy = self.plan, policy_named(entry.policy)
        if weights is not None:
            wanted = {name: weight for name, weight in weights._asdict().items() if weight}
            plan = replace(plan, qos=Qos.of(wanted))
        run = simulate(plan, MisledPolicy(policy, entry.error) if entry.error else policy)
        assert run.latency.mean is not None
        return np.array([run.memory.tuples.mean, run.latency.mean, run.elapsed / run.outputs])


def compare(
    entries: Mapping[str, Contender], chosen: Iterable[PlanCase], startup: float = 0.0, span: float | None = None
) -> dict[str, list[Gain]]:
    """The gains of each contender on all cases under all weightings."""
    gains: dict[str, list[Gain]] = {name: [] for name in entries}
    for bench in map(partial(Bench, startup=startup, span=span), chosen):
        for name, entry in entries.items():
            gains[name] += [bench.gain(entry, weights) for weights in WEIGHTINGS]
    return gains


def better(gains: Iterable[Gain], queries: int = 1) -> float:
    """Return the share of clearly better cases, among those with at least `queries` queries; nan if there are none."""
    counted = [gain.gain > GAIN_MIN for gain in gains if gain.case.queries >= queries]
    return sum(counted) / len(counted) if counted else math.nan


def table(title: str, gains: Mapping[str, list[Gain]]) -> Table:
    drawn = Table(box=SIMPLE_HEAD, title=title)
    for column in ("policy", "> +1%", "2+ queries", "≥ −1%", "mean", "worst", "1% quantile"):
        drawn.add_column(column, justify="left" if column == "policy" else "right", min_width=8)
    for name, mine in gains.items():
        if not mine:  # a short run may draw no case of this kind
            continue
        values = np.array([gain.gain for gain in mine])
        shares = [better(mine), better(mine, queries=2), float(np.mean(values >= -GAIN_MIN))]
        sizes = [values.mean(), values.min(), np.quantile(values, 0.01)]
        drawn.add_row(name, *(f"{share:.0%}" for share in shares), *(f"{size:+.1%}" for size in sizes))
    return drawn


def against(seed: int = SEED, plans: int = PLANS) -> Iterator[Table]:
    """All tables, each as soon as its runs are done."""
    long, short = (list(make_cases(seed, plans, arrivals)) for arrivals in (LONG, SHORT))
    found = compare(PLAIN, long)
    yield table(
        f"gain over the best of {', '.join(FOUR)} in hindsight: {plans} plans, {len(WEIGHTINGS)} weightings", found
    )
    ours = found["qos-chain"]
    parts = {"delay counts": [gain for gain in ours if gain.weights.delay]}  # there something can be gained
    parts |= {str(weights): [gain for gain in ours if gain.weights == weights] for weights in WEIGHTINGS}
    parts |= {pattern: [gain for gain in ours if gain.case.pattern == pattern] for pattern in PATTERNS}
    yield table("the same for qos-chain, by weighting and by pattern", parts)
    yield table("the same by looking ahead", compare(PREDICTIVE, short))
    slow = {"qos-chain": PLAIN["qos-chain"], BOTH: PREDICTIVE[BOTH]}
    title = (
        f"every run starts up for {STARTUP:g} mean operator costs, and no turn begins a tuple after {SLICE:g} of them"
    )
    yield table(title, compare(slow, short, STARTUP, SLICE))


if __name__ == "__main__":
    for shown in against(*map(int, sys.argv[1:])):
        Console(width=120).print(shown)
