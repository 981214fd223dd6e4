"""FAS-gamma against FAS-MCQ(beta) on the test-bed of Sharaf et al., at utilisation 0.95, each relative to RB-MCQ.

250 queries of three operators over 10 streams, five of them in groups of ten; costs K·2^i, selectivities of predicates
uniform from 0.1 to 1, a projection last. The paper's streams have 10,000 tuples; ours fewer, over several seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dsms.papers.fas_mcq import testbed
from dsms.papers.fas_mcq.testbed import Setting
from dsms.plan.graph import Plan
from dsms.simulation import simulate

SEEDS, TUPLES = 8, 400
BETAS = (0.25, 0.375, 0.5, 0.625, 0.75, 1.0)  # close together where ours lie, as a chord is above the curve
GAMMAS = (0.15, 0.2, 0.4, 1.0)

Figures = NDArray[np.float64]  # by seed: staleness and response


class RelativePoint(NamedTuple):
    """Relative to RB-MCQ on the same arrivals: means over seeds."""

    staleness: float
    response: float


def make_plan(seed: int, tuples: int) -> Plan:
    """The plan, with its arrivals; selectivities from a continuum, so that no two queries tie."""
    setting = Setting(seed, tuples, steps=0)
    queries = testbed.draw_queries(setting)
    return testbed.plan(setting, queries, testbed.arrivals(setting, queries))


def measure(policy: str, plans: list[Plan]) -> Figures:
    """Staleness and response of a policy on each plan."""
    runs = [simulate(plan, policy) for plan in plans]
    return np.array([(run.staleness.mean, run.response.mean) for run in runs])


def staleness_saved(point: RelativePoint, curve: list[RelativePoint]) -> float:
    """How much less stale than a curve of others at the same response."""
    along = sorted(curve, key=lambda other: other.response)
    there = np.interp(point.response, [other.response for other in along], [other.staleness for other in along])
    return 1 - point.staleness / float(there)


def relative(measured: Mapping[str, Figures]) -> dict[str, RelativePoint]:
    """Every policy's point, RB-MCQ's being (1, 1)."""
    return {name: RelativePoint(*np.mean(figures / measured["rb-mcq"], axis=0)) for name, figures in measured.items()}


def curve(points: Mapping[str, RelativePoint]) -> list[RelativePoint]:
    """What FAS-MCQ reaches for any beta."""
    return [point for name, point in points.items() if name == "rb-mcq" or name.startswith("fas-mcq")]


def freshness(seeds: int = SEEDS, tuples: int = TUPLES) -> Table:
    """All policies on all seeds, and how much is saved."""
    plans = [make_plan(seed, tuples) for seed in range(seeds)]
    names = ["rb-mcq", *(f"fas-mcq:beta={beta}" for beta in BETAS), *(f"fas-gamma:gamma={gamma}" for gamma in GAMMAS)]
    measured = {name: measure(name, plans) for name in names}
    points, base = relative(measured), measured["rb-mcq"]
    table = Table(box=SIMPLE_HEAD, title="staleness and response relative to rb-mcq, mean ± deviation over seeds")
    for column in ("policy", "staleness", "response", "less stale than fas-mcq at equal response"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for name, figures in measured.items():
        pairs = zip(points[name], np.std(figures / base, axis=0), strict=True)
        shown = [f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in pairs]
        table.add_row(name, *shown, f"{staleness_saved(points[name], curve(points)):+.1%}" if "gamma" in name else "")
    table.caption = (
        f"{seeds} seeds, {tuples} tuples a stream; rb-mcq itself is stale {base[:, 0].mean():.1%} of the time"
    )
    return table


if __name__ == "__main__":
    Console(width=120).print(freshness())
