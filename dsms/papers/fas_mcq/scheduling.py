"""What it costs to decide: each operation on the calendar queue takes as long as the cheapest operator."""

from __future__ import annotations

from typing import Any

from dsms.papers.claim import Claim, Figure, above, below, near
from dsms.papers.experiment import Experiment, Line, Plot, Scale, over, spread_line
from dsms.papers.fas_mcq.beta import BETAS
from dsms.papers.fas_mcq.measuring import FAS, HIGH, RB, measure, point, short
from dsms.papers.fas_mcq.readings import PLAIN
from dsms.papers.measured import Measured, Row

LOADS = (0.1, 0.3, 0.5, 0.7, 0.9, HIGH)
FEW = (0.5, HIGH)
COSTS = {PLAIN: "free", "tenth": "a tenth of the cheapest operator", "cost": "as the cheapest operator"}
MIDDLE = 0.5
ZERO = BETAS[0.0]


def points(scale: Scale) -> list[dict[str, Any]]:
    return [
        point(seed, short(scale), policy, load, reading=reading)
        for seed in scale.numbers()
        for load in scale.of(LOADS, FEW)
        for policy, readings in ((FAS, COSTS), (ZERO, COSTS), (RB, (PLAIN,)))
        for reading in readings
    ]


def against_rb(figure: str, policy: str, reading: str, load: float) -> Figure:
    """A policy whose decisions cost, over RB-MCQ, whose priorities never change."""
    return lambda measured: (
        measured.value(figure, policy=policy, reading=reading, utilisation=load)
        / measured.value(figure, policy=RB, utilisation=load)
    )


def ratios(measured: Measured) -> list[Line]:
    rows = [
        Row(
            {"utilisation": load, "reading": reading, "seed": mine.rows[0].point["seed"]},
            {"ratio": against_rb("staleness", FAS, reading, load)(mine)},
        )
        for mine in measured.by_seed()
        for load in mine.values("utilisation")
        for reading in COSTS
    ]
    return [
        spread_line(label, Measured(rows).where(reading=reading), "ratio", "utilisation")
        for reading, label in COSTS.items()
    ]


BECAUSE = (
    "A tuple changes the priority of the 25 queries that read its stream, and each execution that of its query if it "
    "has more: one operation or two for an execution of four to five times the cheapest operator. At utilisation 0.95 "
    "there is no time for that, and the queues of FAS-MCQ grow until the streams end. The paper's numbers need "
    "operations that cost far less, or a utilisation that counts them."
)

SCHEDULING = Experiment(
    name="scheduling-cost",
    title="What deciding costs",
    setup=(
        "The test-bed with shorter streams (1,000 tuples): entering a changed priority into the order of queries takes "
        "no time, a tenth of the cheapest operator, or as long as that. RB-MCQ's priorities never change and cost "
        "nothing."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot(
            "scheduling-cost-staleness",
            "Staleness of FAS-MCQ relative to RB-MCQ, by what an operation costs",
            "utilisation",
            "staleness ratio",
            ratios,
        ),
        Plot(
            "scheduling-cost-share",
            "Share of time in which FAS-MCQ decides, by what an operation costs",
            "utilisation",
            "share of time",
            lambda measured: over("scheduling", "utilisation", "reading", COSTS)(measured.where(policy=FAS)),
        ),
    ),
    claims=(
        Claim(
            "beta-0",
            "FAS-MCQ(0) responds just later than RB-MCQ, by what its decisions cost (at utilisation 0.5, as a factor).",
            "just above 1",
            against_rb("response", ZERO, "cost", MIDDLE),
            (above(1.0)[0], 1.1),
            above(1.0),
            because=BECAUSE,
            others={COSTS[each]: against_rb("response", ZERO, each, MIDDLE) for each in ("tenth", PLAIN)},
        ),
        Claim(
            "still-fresher",
            "With that cost FAS-MCQ is still less stale than RB-MCQ at utilisation 0.95: 0.6 times.",
            "0.60",
            against_rb("staleness", FAS, "cost", HIGH),
            near(0.60, 0.05),
            below(1.0),
            because=BECAUSE,
            others={COSTS[each]: against_rb("staleness", FAS, each, HIGH) for each in ("tenth", PLAIN)},
        ),
    ),
)
