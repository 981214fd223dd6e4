"""Figure 9: staleness of FAS-MCQ relative to RB-MCQ, against the number of bursty streams."""

from __future__ import annotations

from typing import Any

from dsms.papers.claim import Claim, band_below, band_near
from dsms.papers.experiment import Experiment, Plot, PlotLine, Scale, spread_line
from dsms.papers.fas_mcq.measuring import (
    FAS,
    HIGH,
    RB,
    full,
    measure,
    point,
    ratio,
    readings_of,
    short,
    size,
)
from dsms.papers.fas_mcq.testbed import STREAMS
from dsms.papers.measurements import MeasuredPoint, Measurements

FEW = (0, 3, 5, 7, STREAMS)
HALF = STREAMS // 2
OTHERS = ("skewed", "whole", "operator", "pending", "ties")


def points(scale: Scale) -> list[dict[str, Any]]:
    sweep = []
    for seed in scale.numbers():
        for policy in (FAS, RB):
            sweep += [point(seed, size(scale), policy, bursty=n) for n in scale.of(tuple(range(STREAMS + 1)), FEW)]
            sweep += [
                point(seed, short(scale), policy, bursty=n, reading=name) for name in OTHERS for n in (HALF, STREAMS)
            ]
    return sweep


def staleness_ratio(measured: Measurements, bursty: int) -> float:
    """The staleness of FAS over that of RB with this many bursty streams."""
    return ratio(measured, "staleness", bursty=bursty)


def ratios(measured: Measurements) -> Measurements:
    """The staleness of FAS over that of RB, for each seed and number of bursty streams."""
    return Measurements(
        MeasuredPoint({"bursty": bursty, "seed": runs.rows[0].point["seed"]}, {"ratio": staleness_ratio(runs, bursty)})
        for runs in full(measured).by_seed()
        for bursty in runs.values("bursty")
    )


def lowest(measured: Measurements) -> float:
    """The number of bursty streams with which FAS gains most."""
    places, values = ratios(measured).line("ratio", "bursty")
    return places[values.index(min(values))]


def lines(measured: Measurements) -> list[PlotLine]:
    return [spread_line("FAS-MCQ / RB-MCQ", ratios(measured), "ratio", "bursty")]


BECAUSE = (
    "The ratio falls and rises as in the paper. With selectivities nearer to 1 than uniform ones, FAS-MCQ gains more "
    "with five bursty streams, and less with ten."
)

BURSTS = Experiment(
    name="bursts",
    title="From no bursty stream to ten",
    setup="The test-bed at utilisation 0.95; tuples of a bursty stream arrive in groups of ten.",
    points=points,
    measure=measure,
    plots=(Plot("figure-9", "Staleness of FAS-MCQ relative to RB-MCQ", "bursty streams", "staleness ratio", lines),),
    claims=(
        Claim(
            "middle",
            "FAS-MCQ gains most where some streams are bursty and others are not (ours: the number of bursty streams, "
            "of ten, with the greatest gain).",
            "5, neither 0 nor 10",
            lowest,
            band_near(HALF, 1),
            band_near(HALF, HALF - 1),
            because="The minimum is flat: from four to eight bursty streams ratios hardly differ.",
            pooled=True,
        ),
        Claim(
            "half",
            "With five bursty streams FAS-MCQ is 0.60 times as stale as RB-MCQ.",
            "0.60",
            lambda measured: staleness_ratio(full(measured), HALF),
            band_near(0.60, 0.05),
            band_below(1.0),
            because=BECAUSE,
            others=readings_of(lambda measured: staleness_ratio(measured, HALF), OTHERS, utilisation=HIGH),
        ),
        Claim(
            "all",
            "With ten bursty streams FAS-MCQ is 0.78 times as stale as RB-MCQ.",
            "0.78",
            lambda measured: staleness_ratio(full(measured), STREAMS),
            band_near(0.78, 0.05),
            band_below(1.0),
            because=BECAUSE,
            others=readings_of(lambda measured: staleness_ratio(measured, STREAMS), OTHERS, utilisation=HIGH),
        ),
    ),
)
