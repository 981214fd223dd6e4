"""Weighted freshness: FAS-MCQ with and without weights, where a query's weight is its number of users."""

from __future__ import annotations

from typing import Any

from dsms.papers.claim import Claim, band_above
from dsms.papers.experiment import Experiment, Plot, PlotLine, Scale, spread_line
from dsms.papers.fas_mcq.measuring import FAS, HIGH, RB, measure, point, size
from dsms.papers.fas_mcq.readings import PLAIN
from dsms.papers.measurements import Measurements

LOADS = (0.5, 0.8, HIGH)
FEW = (0.5, HIGH)
WEIGHTED = "weighted"
LINES = {
    (FAS, WEIGHTED): "FAS-MCQ, weighted",
    (FAS, PLAIN): "FAS-MCQ, all alike",
    (RB, PLAIN): "RB-MCQ",
}


def points(scale: Scale) -> list[dict[str, Any]]:
    return [
        point(seed, size(scale), policy, load, reading=reading)
        for seed in scale.numbers()
        for load in scale.of(LOADS, FEW)
        for policy, reading in LINES
    ]


def least_gain(measured: Measurements) -> float:
    """The least factor by which weighted staleness is higher when the policy does not know the weights."""
    return min(
        measured.value("weighted", policy=FAS, reading=PLAIN, utilisation=load)
        / measured.value("weighted", policy=FAS, reading=WEIGHTED, utilisation=load)
        for load in measured.values("utilisation")
    )


def lines(measured: Measurements) -> list[PlotLine]:
    return [
        spread_line(label, measured.where(policy=policy, reading=reading), "weighted", "utilisation")
        for (policy, reading), label in LINES.items()
    ]


WEIGHTS = Experiment(
    name="weights",
    title="Weighted freshness",
    setup=(
        "The test-bed; a query serves one to ten users (chosen, uniform), and their number is its weight. Staleness is "
        "the weighted mean over queries, also where the policy does not know the weights."
    ),
    points=points,
    measure=measure,
    plots=(Plot("weighted", "Staleness by weight", "utilisation", "average weighted staleness", lines),),
    claims=(
        Claim(
            "weighted",
            "With weights in its priorities FAS-MCQ has less weighted staleness (ours: the least factor of the "
            "staleness without weights over that with).",
            "less stale by weight",
            least_gain,
            band_above(1.0),
            pooled=True,
        ),
    ),
)
