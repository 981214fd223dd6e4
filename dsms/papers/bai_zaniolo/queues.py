"""Two queues of three tuples: why the cheapest head is not the best choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsms.papers import Claim, Experiment, Line, Measured, Plot, Point, Scale, near
from dsms.papers.bai_zaniolo.batch import at_zero, drawn, worked_off
from dsms.papers.claim import Figure
from dsms.planfile import plan_from

QUEUES = {"a": [10, 1], "b": [9]}
LABELS = {"mss": "MSS", "tuple-greedy": "Greedy"}


def points(scale: Scale) -> list[Point]:
    return [{"seed": seed, "policy": policy} for seed in scale.numbers() for policy in LABELS]


def measure(point: Point) -> dict[str, Any]:
    plan = plan_from({
        "streams": {name: {"arrivals": at_zero(len(costs), cost=costs)} for name, costs in QUEUES.items()},
        "queries": {f"q{name}": {"from": name, "operators": [{"name": f"o{name}", "cost": 1.0}]} for name in QUEUES},
    })  # fmt: skip
    gone = worked_off(plan, point["policy"])
    return {"area": gone.area, **gone.outputs_left()}


def _lines(measured: Measured) -> Sequence[Line]:
    return [drawn(label, measured, policy=policy) for policy, label in LABELS.items()]


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
            band=near(48, 1e-9),
        ),
        Claim(
            name="mss-total",
            text="MSS takes 10, 1, 9: a total latency of 10 + 11 + 20.",
            paper="41",
            ours=_total("mss"),
            band=near(41, 1e-9),
        ),
    ),
)
