"""The paper's example of two queues, where taking the cheapest head tuple first is not optimal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsms.papers import Claim, Experiment, Measurements, Plot, PlotLine, Point, Scale, band_near
from dsms.papers.bai_zaniolo.batch import arrive_at_zero, chart_line, drain_batch
from dsms.papers.claim import Figure
from dsms.query.plan_file import plan_from

QUEUES = {"a": [10, 1], "b": [9]}  # the costs of the waiting tuples
LABELS = {"mss": "MSS", "tuple-greedy": "Greedy"}


def points(scale: Scale) -> list[Point]:
    return [{"seed": seed, "policy": policy} for seed in scale.numbers() for policy in LABELS]


def measure(point: Point) -> dict[str, Any]:
    plan = plan_from({
        "streams": {name: {"arrivals": arrive_at_zero(len(costs), cost=costs)} for name, costs in QUEUES.items()},
        "queries": {f"q{name}": {"from": name, "operators": [{"name": f"o{name}", "cost": 1.0}]} for name in QUEUES},
    })  # fmt: skip
    result = drain_batch(plan, point["policy"])
    return {"area": result.area, **result.outputs_left()}


def _lines(measured: Measurements) -> Sequence[PlotLine]:
    return [chart_line(label, measured, policy=policy) for policy, label in LABELS.items()]


def _total(policy: str) -> Figure:
    return lambda measured: measured.value("area", policy=policy)


TWO_QUEUES = Experiment(
    name="two-queues",
    title="Per-tuple greedy is not optimal",
    setup="Tuples that take 10 and 1 wait in one queue, one that takes 9 in another; each gives one output.",
    points=points,
    measure=measure,
    plots=(Plot("two-queues-chart", "Output completion", "time", "outputs not delivered", _lines),),
    claims=(
        Claim(
            name="greedy-total",
            text="Greedy takes 9, 10, 1: a total latency of 9 + 19 + 20.",
            paper="48",
            ours=_total("tuple-greedy"),
            band=band_near(48, 1e-9),
        ),
        Claim(
            name="mss-total",
            text="MSS takes 10, 1, 9: a total latency of 10 + 11 + 20.",
            paper="41",
            ours=_total("mss"),
            band=band_near(41, 1e-9),
        ),
    ),
)
