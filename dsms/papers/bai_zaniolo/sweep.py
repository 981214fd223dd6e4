"""More and more outliers: the sweep of figures 12 and 13, and how its curves are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dsms.papers import Line, Measured, Plot, Point, Scale
from dsms.papers.bai_zaniolo.outliers import PLACES
from dsms.papers.claim import Figure
from dsms.papers.experiment import over

FULL = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20)
QUICK = (0, 2, 6, 10, 20)


def points(policies: Sequence[str], quick: int) -> Callable[[Scale], list[Point]]:
    """A point is one policy at one share of outliers, on many batches; on fewer in a quick run, by how noisy it is."""

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


def averaged(point: Point, of_batch: Callable[[int], float]) -> dict[str, Any]:
    """A figure's mean over batches, and that of each."""
    each = [of_batch(batch) for batch in range(point["batches"])]
    return {"mean": float(np.mean(each)), "each": each}


def plots(figure: str, title: str, y: str, labels: Mapping[str, str]) -> tuple[Plot, ...]:
    """The figure, and once more for each other way to place outliers."""
    return tuple(
        Plot(
            figure if places == "spread" else f"{figure}-{places}",
            f"{title}: {told}",
            "outliers (% of the tuples of the first operator)",
            y,
            _lines(places, labels),
        )
        for places, told in PLACES.items()
    )


def _lines(places: str, labels: Mapping[str, str]) -> Callable[[Measured], Sequence[Line]]:
    drawn = over("mean", "percent", "policy", labels)
    return lambda measured: drawn(measured.where(places=places))


def at(places: str, figure: Figure) -> Figure:
    """The same number where outliers wait elsewhere."""
    return lambda measured: figure(measured.where(places=places))


def elsewhere(figure: Figure) -> dict[str, Figure]:
    """Other readings: the paper does not say where outliers wait."""
    return {told: at(places, figure) for places, told in PLACES.items() if places != "spread"}


def excess(policy: str, base: str, up_to: float = 100) -> Figure:
    """The most by which one policy is above another at any share of outliers, as a share."""
    return lambda measured: max(
        measured.value("mean", policy=policy, percent=percent) / measured.value("mean", policy=base, percent=percent)
        - 1
        for percent in measured.values("percent")
        if percent <= up_to
    )


def distance(policy: str, base: str) -> Figure:
    """The most by which one policy is off another, on either side."""
    return lambda measured: max(excess(policy, base)(measured), excess(base, policy)(measured))


def single_batch(policy: str, base: str) -> Figure:
    """The same on one batch, as a paper may have drawn it: the mean of what each of ours would have shown."""

    def figure(measured: Measured) -> float:
        ratios = [
            np.array(measured.series("each", policy=policy, percent=percent))
            / np.array(measured.series("each", policy=base, percent=percent))
            for percent in measured.values("percent")
        ]
        return float(np.max(ratios, axis=0).mean()) - 1

    return figure


def growth(measured: Measured, policy: str) -> float:
    """How many times as much it is with the most outliers as without."""
    _, means = measured.line("mean", "percent", policy=policy)
    return means[-1] / means[0]


def hit_harder(policy: str, others: Sequence[str]) -> Figure:
    """Its growth over the greatest of the others."""
    return lambda measured: growth(measured, policy) / max(growth(measured, other) for other in others)


def least_rise(policies: Sequence[str]) -> Figure:
    """From any share of outliers to the next, of any policy, as a ratio."""

    def figure(measured: Measured) -> float:
        curves = [measured.line("mean", "percent", policy=policy)[1] for policy in policies]
        return min(after / before for means in curves for before, after in pairwise(means))

    return figure
