"""Example 1 of the paper: the queue size at each instant under Greedy and FIFO, compared with the printed table."""

from __future__ import annotations

from typing import Any

import dsms
from dsms.papers.chain.runs import LABELS
from dsms.papers.claim import Claim, Figure, band_from, band_near, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.measurements import Measurements

THRESHOLD = 3.0
TABLE = {"greedy": (1, 1.2, 1.4, 1.6, 1.8), "fifo": (1, 1.2, 2.0, 2.2, 3.0)}  # printed queue sizes at 0, 1, … 4
ROUNDING = 1e-9
PLAN: dict[str, Any] = {
    "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 1, 2, 3, 4, 5, 6]}}},
    "queries": {
        "q": {
            "from": "s",
            "operators": [
                {"name": "o1", "cost": 1.0, "selectivity": 0.2},
                {"name": "o2", "cost": 5.0, "selectivity": 0.0},  # one time unit for the 0.2 of a tuple that reach it
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


def table_difference(policy: str) -> Figure:
    """The largest difference from the paper's table."""

    def difference(measured: Measurements) -> float:
        held = measured.series("held", policy=policy)
        return max(abs(ours - printed) for ours, printed in zip(held, TABLE[policy], strict=False))

    return difference


def _of(policy: str, figure: str) -> Figure:
    return lambda measured: measured.value(figure, policy=policy)


def _lines(measured: Measurements) -> list[PlotLine]:
    return [
        PlotLine(label, measured.series("at", policy=policy), measured.series("held", policy=policy))
        for policy, label in LABELS.items()
    ]


def _table_claim(policy: str) -> Claim:
    label = LABELS[policy]
    return Claim(
        f"table-{policy}",
        f"Queue size of {label} at 0, 1, … 4 (ours: the largest difference from the table).",
        ", ".join(f"{held:g}" for held in TABLE[policy]),
        table_difference(policy),
        band_up_to(ROUNDING),
        reading="The printed digits are lost; these are recovered, and agree with every sentence about them.",
    )


EXAMPLE = Experiment(
    name="example",
    title="Example 1: seven tuples, one per time unit",
    setup="O1 takes one time unit and leaves 0.2 of a tuple; O2 takes one unit for that, and its output leaves. Tuples "
    "arrive at 0, 1, … 6. Tuples are fractional: memory is the sum of what is left of them. A visit of "
    "Round-robin is one tuple.",
    points=points,
    measure=measure,
    plots=(Plot("example-1", "Example 1", "time", "queue size", _lines),),
    claims=(
        _table_claim("greedy"),
        _table_claim("fifo"),
        Claim(
            "threshold-greedy",
            "Greedy manages with room for 3 tuples (ours: its largest queue size).",
            "at most 3",
            _of("greedy", "max"),
            band_up_to(THRESHOLD),
        ),
        Claim(
            "threshold-fifo",
            "FIFO does not manage with room for 3 tuples (ours: its largest queue size).",
            "more than 3",
            _of("fifo", "max"),
            band_from(THRESHOLD + ROUNDING),
        ),
        Claim(
            "empty-after-13",
            "Both have emptied their queues at the end of the seven units without arrivals (ours: the later of the "
            "two).",
            "14",
            lambda measured: max(measured.value("elapsed", policy=policy) for policy in TABLE),
            band_near(14, ROUNDING),
        ),
    ),
)
