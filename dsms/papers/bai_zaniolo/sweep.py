"""The sweep over shares of outliers that figures 12 and 13 have in common, and comparisons of its curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dsms.papers import Measurements, Plot, PlotLine, Point, Scale
from dsms.papers.bai_zaniolo.outlier_costs import PLACES
from dsms.papers.claim import Figure
from dsms.papers.experiment import lines_over

FULL = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20)  # % of outliers
QUICK = (0, 2, 6, 10, 20)


def points(policies: Sequence[str], quick: int) -> Callable[[Scale], list[Point]]:
    """Make the sweep: one policy at one share of outliers, averaged over 40 batches, or `quick` in a quick run."""

    def batches(scale: Scale, places: str) -> int:
        return scale.of(40, quick if places == "spread" else 4)

    def listed(scale: Scale) -> list[Point]:
        return [
            {"seed": seed, "places": places, "percent": percent, "policy": policy, "batches": batches(scale, places)}
            for seed in scale.numbers()
            for places in PLACES
            for percent in scale.of(FULL, QUICK)
            for policy in policies
        ]

    return listed


def average_batches(point: Point, measure_batch: Callable[[int], float]) -> dict[str, Any]:
    """A figure of each batch, and its mean."""
    each = [measure_batch(batch) for batch in range(point["batches"])]
    return {"mean": float(np.mean(each)), "each": each}


def plots(figure: str, title: str, y: str, labels: Mapping[str, str]) -> tuple[Plot, ...]:
    """The paper's figure, and one more plot for each other placement of the outliers."""
    return tuple(
        Plot(
            figure if places == "spread" else f"{figure}-{places}",
            f"{title}: {description}",
            "outliers (% of the tuples of the first operator)",
            y,
            _lines(places, labels),
        )
        for places, description in PLACES.items()
    )


def _lines(places: str, labels: Mapping[str, str]) -> Callable[[Measurements], Sequence[PlotLine]]:
    make_lines = lines_over("mean", "percent", "policy", labels)
    return lambda measured: make_lines(measured.where(places=places))


def at(places: str, figure: Figure) -> Figure:
    """The figure for one placement of the outliers."""
    return lambda measured: figure(measured.where(places=places))


def elsewhere(figure: Figure) -> dict[str, Figure]:
    """Other readings, since the paper does not say where outliers wait: the figure for each other placement."""
    return {text: at(places, figure) for places, text in PLACES.items() if places != "spread"}


def excess(policy: str, base: str, up_to: float = 100) -> Figure:
    """The greatest relative excess of one policy over another, at any share of outliers."""
    return lambda measured: max(
        measured.value("mean", policy=policy, percent=percent) / measured.value("mean", policy=base, percent=percent)
        - 1
        for percent in measured.values("percent")
        if percent <= up_to
    )


def distance(policy: str, base: str) -> Figure:
    """The greatest relative difference of two policies, in either direction."""
    return lambda measured: max(excess(policy, base)(measured), excess(base, policy)(measured))


def single_batch(policy: str, base: str) -> Figure:
    """The greatest relative excess on a single batch, as the paper may have measured it; the mean over our batches."""

    def figure(measured: Measurements) -> float:
        ratios = [
            np.array(measured.series("each", policy=policy, percent=percent))
            / np.array(measured.series("each", policy=base, percent=percent))
            for percent in measured.values("percent")
        ]
        return float(np.max(ratios, axis=0).mean()) - 1

    return figure


def growth(measured: Measurements, policy: str) -> float:
    """A policy's mean at the greatest share of outliers over that without outliers."""
    _, means = measured.line("mean", "percent", policy=policy)
    return means[-1] / means[0]


def growth_over_others(policy: str, others: Sequence[str]) -> Figure:
    """A policy's growth over the greatest growth of the others."""
    return lambda measured: growth(measured, policy) / max(growth(measured, other) for other in others)


def least_rise(policies: Sequence[str]) -> Figure:
    """The least ratio from one share of outliers to the next, under any policy."""

    def figure(measured: Measurements) -> float:
        curves = [measured.line("mean", "percent", policy=policy)[1] for policy in policies]
        return min(after / before for means in curves for before, after in pairwise(means))

    return figure
