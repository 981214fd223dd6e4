"""T_δ, the time of one item through three operations: by hand, by the paper's formula, and as executed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dsms.dataflow import (
    Cost,
    DataflowExecution,
    JoinTerm,
    StreamItem,
    StreamTerm,
    number_operations,
    total_time,
    translate,
)
from dsms.papers.claim import Claim, band_near
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.measurements import Measurements

QUERY = JoinTerm(StreamTerm("r", "ab"), StreamTerm("s", "bc"), "b")
TIMES = (1, 2, 3)  # of δ_r: ->(w_r), ⋈_b(w_s), ->(w_out)
OUTPUTS = (2, 3)


def points(scale: Scale) -> Sequence[Point]:
    return [{"mode": mode, "seed": seed} for seed in scale.numbers() for mode in ("block", "item")]


def measure(point: Point) -> dict[str, Any]:
    """Run an item of r that evicts another from a window of one row, where both join with three items of s."""
    plan, mode = translate(QUERY), point["mode"]
    items = [StreamItem("s", {"b": 1, "c": c}) for c in range(OUTPUTS[1])]
    items += [StreamItem("r", {"a": a, "b": 1}) for a in range(OUTPUTS[0])]
    run = DataflowExecution(plan, "serial", rows={"r": OUTPUTS[0] - 1}, mode=mode).run(items, lambda ready: ready[-1])
    rows = [row for row, (stream, _) in enumerate(number_operations(plan)) if stream == "r"]
    steps = [(node.row, n) for node, n in zip(run.ran, run.handled, strict=True) if node.item == len(items) - 1]
    ends = np.cumsum([TIMES[rows.index(row)] * n for row, n in steps]).tolist()
    outs = [end for (row, _), end in zip(steps, ends, strict=True) if row == rows[-1]]
    costs = [Cost(time, outputs) for time, outputs in zip(TIMES, (*OUTPUTS, 1), strict=True)]
    return {
        "formula": total_time(costs, mode),
        "first": outs[0],
        "last": outs[-1],
        "mean": float(np.mean(outs)),
        "outs": outs,
    }


def _lines(measured: Measurements) -> list[PlotLine]:
    lines = []
    for mode in ("block", "item"):
        outs = measured.series("outs", mode=mode)
        size = OUTPUTS[0] * OUTPUTS[1] // len(outs)
        counts = [size * (i + 1) for i in range(len(outs))]
        time = measured.value("formula", mode=mode)
        lines.append(PlotLine(f"{mode} mode", [0, *outs], [0, *counts], steps=True))
        lines.append(PlotLine(f"T_δ in {mode} mode", [time, time], [0, counts[-1]]))
    return lines


TRANSIT = Experiment(
    name="transit",
    title="T_δ of three operations",
    setup=(
        "δ_r of r ⋈_b s is ->(w_r), ⋈_b(w_s), ->(w_out), which take 1, 2 and 3 per item. w_r holds one row, so that a "
        "new item puts out two rows (the evicted one and itself), and each joins with three in w_s: f = (2, 3). "
        "The paper prints the formula and no example; we chose these numbers and computed the result by hand. In block "
        "mode an item is done when its last operation is. In item mode, on one processor that always continues with "
        "the row nearest to the result, results appear one by one: the formula's (1 + f_1…f_i)/2 is their mean."
    ),
    points=points,
    measure=measure,
    plots=(Plot("t-delta", "Results of one item over time", "time", "results recorded", _lines),),
    claims=(
        Claim(
            "block formula",
            "In block mode T_δ = τ_1 + f_1 τ_2 + f_1 f_2 τ_3.",
            "23 (by hand)",
            lambda measured: measured.value("formula", mode="block"),
            band_near(23, 0),
            form=".4g",
        ),
        Claim(
            "block executed",
            "In block mode an operation starts when the one before it is done: T_δ is when the last one is.",
            "23 (by hand)",
            lambda measured: measured.value("last", mode="block"),
            band_near(23, 0),
            form=".4g",
        ),
        Claim(
            "item formula",
            "In item mode T_δ = τ_1 + (1 + f_1)/2 τ_2 + (1 + f_1 f_2)/2 τ_3.",
            "14.5 (by hand)",
            lambda measured: measured.value("formula", mode="item"),
            band_near(14.5, 0),
            form=".4g",
        ),
        Claim(
            "item executed",
            "In item mode an operation starts as soon as there is an item for it; T_δ is the mean delay.",
            "14.5 (by hand)",
            lambda measured: measured.value("mean", mode="item"),
            band_near(14.5, 0),
            reading="The paper does not say whose delay; it is exactly the mean over the results of their delays.",
            others={
                "the first result": lambda measured: measured.value("first", mode="item"),
                "the last result": lambda measured: measured.value("last", mode="item"),
            },
            form=".4g",
        ),
    ),
)
