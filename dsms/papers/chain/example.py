"""The paper's example 1: what is held at each instant, to the digit."""

from __future__ import annotations

from typing import Any

import dsms
from dsms.papers.chain.runs import LABELS
from dsms.papers.claim import Claim, Figure, at_least, at_most, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.measured import Measured

THRESHOLD = 3.0
TABLE = {"greedy": (1, 1.2, 1.4, 1.6, 1.8), "fifo": (1, 1.2, 2.0, 2.2, 3.0)}  # as printed: at 0, 1, … 4
ROUNDING = 1e-9
PLAN: dict[str, Any] = {
    "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 1, 2, 3, 4, 5, 6]}}},
    "queries": {
        "q": {
            "from": "s",
            "operators": [
                {"name": "o1", "cost": 1.0, "selectivity": 0.2},
                {"name": "o2", "cost": 5.0, "selectivity": 0.0},  # a unit of time for the 0.2 that get to it
            ],
        }
    },
    "run": {"tuples": "fractional"},
}


def points(scale: Scale) -> list[Point]:
    return [{"seed": seed, "policy": policy} for seed in scale.numbers() for policy in LABELS]


def measure(point: Point) -> dict[str, Any]:
    run = dsms.simulate(PLAN, point["policy"], sample=1.0, seed=point["seed"])
    return {
        "at": [at for at, _ in run.memory.samples],
        "held": [held for _, held in run.memory.samples],
        "max": run.memory.tuples.max,
        "elapsed": run.elapsed,
    }


def off(policy: str) -> Figure:
    """The largest difference from the paper's table."""

    def difference(measured: Measured) -> float:
        held = measured.series("held", policy=policy)
        return max(abs(ours - printed) for ours, printed in zip(held, TABLE[policy], strict=False))

    return difference


def _of(policy: str, figure: str) -> Figure:
    return lambda measured: measured.value(figure, policy=policy)


def _lines(measured: Measured) -> list[Line]:
    return [
        Line(label, measured.series("at", policy=policy), measured.series("held", policy=policy))
        for policy, label in LABELS.items()
    ]


def _table_claim(policy: str) -> Claim:
    label = LABELS[policy]
    return Claim(
        f"table-{policy}",
        f"What {label} holds at 0, 1, … 4 (the largest difference from the table).",
        ", ".join(f"{held:g}" for held in TABLE[policy]),
        off(policy),
        at_most(ROUNDING),
        reading="The digits are destroyed; these are recovered, and agree with all that is said about them.",
    )


EXAMPLE = Experiment(
    name="example",
    title="Example 1: seven tuples, one a unit of time",
    setup="O1 takes a unit of time and leaves 0.2 of a tuple; O2 takes a unit for that, and its output leaves. Tuples "
    "arrive at 0, 1, … 6, and none after. Tuples are fractional: memory is what is left of them. A visit of "
    "Round-robin is one tuple.",
    points=points,
    measure=measure,
    plots=(Plot("example-1", "Example 1", "time", "queue size", _lines),),
    claims=(
        _table_claim("greedy"),
        _table_claim("fifo"),
        Claim(
            "threshold-greedy",
            "With room for 3, Greedy gets through (the most it holds).",
            "at most 3",
            _of("greedy", "max"),
            at_most(THRESHOLD),
        ),
        Claim(
            "threshold-fifo",
            "With room for 3, FIFO does not get through (the most it holds).",
            "more than 3",
            _of("fifo", "max"),
            at_least(THRESHOLD + ROUNDING),
        ),
        Claim(
            "empty-after-13",
            "Both are done when the seven units of rest are over (the later of the two).",
            "14",
            lambda measured: max(measured.value("elapsed", policy=policy) for policy in TABLE),
            near(14, ROUNDING),
        ),
    ),
)
