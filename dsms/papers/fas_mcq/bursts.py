"""Figure 9: how many of the ten streams are bursty."""

from __future__ import annotations

from typing import Any

from dsms.papers.claim import Claim, below, near
from dsms.papers.experiment import Experiment, Line, Plot, Scale, spread_line
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
from dsms.papers.measured import Measured, Row

FEW = (0, 3, 5, 7, STREAMS)
HALF = STREAMS // 2
OTHERS = ("skewed", "whole", "operator", "pending", "ties")


def points(scale: Scale) -> list[dict[str, Any]]:
    found = []
    for seed in scale.numbers():
        for policy in (FAS, RB):
            found += [point(seed, size(scale), policy, bursty=n) for n in scale.of(tuple(range(STREAMS + 1)), FEW)]
            found += [
                point(seed, short(scale), policy, bursty=n, reading=name) for name in OTHERS for n in (HALF, STREAMS)
            ]
    return found


def at(measured: Measured, bursty: int) -> float:
    return ratio(measured, "staleness", bursty=bursty)


def ratios(measured: Measured) -> Measured:
    """FAS over RB for each seed and number of bursty streams."""
    return Measured(
        Row({"bursty": bursty, "seed": mine.rows[0].point["seed"]}, {"ratio": at(mine, bursty)})
        for mine in full(measured).by_seed()
        for bursty in mine.values("bursty")
    )


def lowest(measured: Measured) -> float:
    """With how many bursty streams FAS gains most."""
    places, values = ratios(measured).line("ratio", "bursty")
    return places[values.index(min(values))]


def lines(measured: Measured) -> list[Line]:
    return [spread_line("FAS-MCQ / RB-MCQ", ratios(measured), "ratio", "bursty")]


BECAUSE = (
    "The fall and the rise are there. With five bursty streams FAS-MCQ gains more, and with ten less, where "
    "selectivities are nearer to 1 than uniform ones."
)

BURSTS = Experiment(
    name="bursts",
    title="From no bursty stream to ten",
    setup="The test-bed at utilisation 0.95; a bursty stream has its tuples in groups of ten, which come together.",
    points=points,
    measure=measure,
    plots=(Plot("figure-9", "Staleness of FAS-MCQ relative to RB-MCQ", "bursty streams", "staleness ratio", lines),),
    claims=(
        Claim(
            "middle",
            "FAS-MCQ gains most where some streams are bursty and others are not: so many of ten.",
            "5, neither 0 nor 10",
            lowest,
            near(HALF, 1),
            near(HALF, HALF - 1),
            because="The least is flat: from four to eight bursty streams ratios hardly differ.",
            pooled=True,
        ),
        Claim(
            "half",
            "With five bursty streams FAS-MCQ is 0.60 times as stale as RB-MCQ.",
            "0.60",
            lambda measured: at(full(measured), HALF),
            near(0.60, 0.05),
            below(1.0),
            because=BECAUSE,
            others=readings_of(lambda measured: at(measured, HALF), OTHERS, utilisation=HIGH),
        ),
        Claim(
            "all",
            "With ten bursty streams FAS-MCQ is 0.78 times as stale as RB-MCQ.",
            "0.78",
            lambda measured: at(full(measured), STREAMS),
            near(0.78, 0.05),
            below(1.0),
            because=BECAUSE,
            others=readings_of(lambda measured: at(measured, STREAMS), OTHERS, utilisation=HIGH),
        ),
    ),
)
