"""T_δ by hand: the time of an item through three operations, by the formula and as it is executed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dsms.dataflow import Cost, Execution, Item, Join, Stream, duration, numbered, translate
from dsms.papers.claim import Claim, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.measured import Measured

QUERY = Join(Stream("r", "ab"), Stream("s", "bc"), "b")
TIMES = (1, 2, 3)  # of δ_r: ->(w_r), ⋈_b(w_s), ->(w_out)
OUTPUTS = (2, 3)


def points(scale: Scale) -> Sequence[Point]:
    return [{"mode": mode, "seed": seed} for seed in scale.numbers() for mode in ("block", "item")]


def measure(point: Point) -> dict[str, Any]:
    """The last item of r drives another out of a window of one row, and both meet three items of s."""
    plan, mode = translate(QUERY), point["mode"]
    items = [Item("s", {"b": 1, "c": c}) for c in range(OUTPUTS[1])]
    items += [Item("r", {"a": a, "b": 1}) for a in range(OUTPUTS[0])]
    run = Execution(plan, "serial", rows={"r": OUTPUTS[0] - 1}, mode=mode).run(items, lambda ready: ready[-1])
    rows = [row for row, (stream, _) in enumerate(numbered(plan)) if stream == "r"]
    steps = [(node.row, n) for node, n in zip(run.ran, run.handled, strict=True) if node.item == len(items) - 1]
    ends = np.cumsum([TIMES[rows.index(row)] * n for row, n in steps]).tolist()
    outs = [end for (row, _), end in zip(steps, ends, strict=True) if row == rows[-1]]
    costs = [Cost(time, outputs) for time, outputs in zip(TIMES, (*OUTPUTS, 1), strict=True)]
    return {
        "formula": duration(costs, mode),
        "first": outs[0],
        "last": outs[-1],
        "mean": float(np.mean(outs)),
        "outs": outs,
    }


def _lines(measured: Measured) -> list[Line]:
    lines = []
    for mode in ("block", "item"):
        outs = measured.series("outs", mode=mode)
        size = OUTPUTS[0] * OUTPUTS[1] // len(outs)
        counts = [size * (i + 1) for i in range(len(outs))]
        time = measured.value("formula", mode=mode)
        lines.append(Line(f"{mode} mode", [0, *outs], [0, *counts], steps=True))
        lines.append(Line(f"T_δ in {mode} mode", [time, time], [0, counts[-1]]))
    return lines


TRANSIT = Experiment(
    name="transit",
    title="T_δ of three operations",
    setup=(
        "δ_r of r ⋈_b s is ->(w_r), ⋈_b(w_s), ->(w_out), which take 1, 2 and 3 an item. w_r holds one row, so that a "
        "new item puts out two (itself and, before it, the one that leaves), and each meets three in w_s: f = (2, 3). "
        "The paper prints the formula and no example; these numbers are chosen and worked out by hand. In block mode "
        "an item is through when its last operation is done. In item mode, on one processor that always goes on with "
        "what is nearest to the result, results come one by one: the formula's (1 + f_1…f_i)/2 is their mean."
    ),
    points=points,
    measure=measure,
    plots=(Plot("t-delta", "Results of one item over time", "time", "results recorded", _lines),),
    claims=(
        Claim(
            "block formula",
            "In block mode T_δ = τ_1 + f_1 τ_2 + f_1 f_2 τ_3.",
            "23 (by hand)",
            lambda found: found.value("formula", mode="block"),
            near(23, 0),
            form=".4g",
        ),
        Claim(
            "block executed",
            "In block mode an operation starts when the one before it is done: T_δ is when the last one is.",
            "23 (by hand)",
            lambda found: found.value("last", mode="block"),
            near(23, 0),
            form=".4g",
        ),
        Claim(
            "item formula",
            "In item mode T_δ = τ_1 + (1 + f_1)/2 τ_2 + (1 + f_1 f_2)/2 τ_3.",
            "14.5 (by hand)",
            lambda found: found.value("formula", mode="item"),
            near(14.5, 0),
            form=".4g",
        ),
        Claim(
            "item executed",
            "In item mode an operation starts as soon as there is an item for it; T_δ is the mean delay.",
            "14.5 (by hand)",
            lambda found: found.value("mean", mode="item"),
            near(14.5, 0),
            reading="Whose delay is not said: it is exactly the mean over the results of when they are out.",
            others={
                "the first result": lambda found: found.value("first", mode="item"),
                "the last result": lambda found: found.value("last", mode="item"),
            },
            form=".4g",
        ),
    ),
)
