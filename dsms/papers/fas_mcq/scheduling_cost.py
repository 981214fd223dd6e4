"""The cost of scheduling: FAS-MCQ against RB-MCQ when updating a query's priority takes processing time."""

from __future__ import annotations

from typing import Any

from dsms.papers.claim import Claim, Figure, band_above, band_below, band_near
from dsms.papers.experiment import Experiment, Plot, PlotLine, Scale, lines_over, spread_line
from dsms.papers.fas_mcq.beta import BETAS
from dsms.papers.fas_mcq.measuring import FAS, HIGH, RB, measure, point, short
from dsms.papers.fas_mcq.readings import PLAIN
from dsms.papers.measurements import MeasuredPoint, Measurements

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


def over_rb(figure: str, policy: str, reading: str, load: float) -> Figure:
    """A figure of a policy that pays for its priority updates, over that of RB-MCQ, whose priorities never change."""
    return lambda measured: (
        measured.value(figure, policy=policy, reading=reading, utilisation=load)
        / measured.value(figure, policy=RB, utilisation=load)
    )


def ratios(measured: Measurements) -> list[PlotLine]:
    rows = [
        MeasuredPoint(
            {"utilisation": load, "reading": reading, "seed": runs.rows[0].point["seed"]},
            {"ratio": over_rb("staleness", FAS, reading, load)(runs)},
        )
        for runs in measured.by_seed()
        for load in runs.values("utilisation")
        for reading in COSTS
    ]
    return [
        spread_line(label, Measurements(rows).where(reading=reading), "ratio", "utilisation")
        for reading, label in COSTS.items()
    ]


BECAUSE = (
    "A tuple changes the priority of the 25 queries that read its stream, and each execution changes that of its query "
    "if it has more tuples. So an execution, which takes four to five times the cheapest operator, needs one or two "
    "operations. At utilisation 0.95 there is no time for them, and the queues of FAS-MCQ grow until the streams end. "
    "The paper's numbers need operations that cost far less, or a utilisation that includes them."
)

SCHEDULING = Experiment(
    name="scheduling-cost",
    title="The cost of scheduling",
    setup=(
        "The test-bed with shorter streams (1,000 tuples): updating a query's priority in the calendar queue takes no "
        "time, a tenth of the cheapest operator's time, or that time. RB-MCQ's priorities never change and cost "
        "nothing."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot(
            "scheduling-cost-staleness",
            "Staleness of FAS-MCQ relative to RB-MCQ, by the cost of an operation",
            "utilisation",
            "staleness ratio",
            ratios,
        ),
        Plot(
            "scheduling-cost-share",
            "Share of time that FAS-MCQ spends on scheduling, by the cost of an operation",
            "utilisation",
            "share of time",
            lambda measured: lines_over("scheduling", "utilisation", "reading", COSTS)(measured.where(policy=FAS)),
        ),
    ),
    claims=(
        Claim(
            "beta-0",
            "FAS-MCQ(0) responds just later than RB-MCQ, because its scheduling costs time (ours: the factor at "
            "utilisation 0.5).",
            "just above 1",
            over_rb("response", ZERO, "cost", MIDDLE),
            (band_above(1.0)[0], 1.1),
            band_above(1.0),
            because=BECAUSE,
            others={COSTS[each]: over_rb("response", ZERO, each, MIDDLE) for each in ("tenth", PLAIN)},
        ),
        Claim(
            "still-fresher",
            "With that cost FAS-MCQ is still less stale than RB-MCQ at utilisation 0.95: 0.6 times.",
            "0.60",
            over_rb("staleness", FAS, "cost", HIGH),
            band_near(0.60, 0.05),
            band_below(1.0),
            because=BECAUSE,
            others={COSTS[each]: over_rb("staleness", FAS, each, HIGH) for each in ("tenth", PLAIN)},
        ),
    ),
)
