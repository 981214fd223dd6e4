"""An item of t that meets r ⋈ s: how long it waits for a window of its results, over when the last item of s came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsms.dataflow import Detour, Item, conflict_matrix, translate
from dsms.papers.claim import Claim, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.timed import finished
from dsms.papers.getta_vossough.workload import THREE, Workload
from dsms.papers.measured import Measured

TIMES = {"record": 1.0, "join": 2.0}
WORKLOAD = Workload(THREE, {"r": 1, "s": 1, "t": 1}, {"a": 1, "b": 1, "c": 1}, TIMES)
ITEMS = [Item("r", {"a": 0, "b": 0}), Item("s", {"b": 0, "c": 0}), Item("t", {"a": 0, "c": 0})]
AT = 100.0  # when d_s comes, long after d_r
PLANS = {"with": translate(THREE, ["rs"]), "without": translate(THREE)}


def points(scale: Scale) -> Sequence[Point]:
    return [
        {"window": window, "since": since, "seed": seed}
        for seed in scale.numbers()
        for since in np.arange(0, 5.01, scale.of(0.25, 0.5)).tolist()
        for window in PLANS
    ]


def measure(point: Point) -> dict[str, Any]:
    """The time of d_t until its last join is done, by equations 1 and 2 and on the scheduling graph."""
    plan = PLANS[point["window"]]
    detour = Detour.of(WORKLOAD.estimate, PLANS["with"][2], PLANS["without"][2])
    run, arrives = WORKLOAD.run(plan, ITEMS), AT + point["since"]
    took = {}
    for timestamps in (True, False):
        matrix = conflict_matrix(plan, timestamps=timestamps)
        done = finished(plan, run, "rst", [0, AT, arrives], TIMES, matrix)[2]
        took[timestamps] = max(end for operation, end in done.items() if operation.window != "w_out") - arrives
    formula = detour.with_window(point["since"]) if point["window"] == "with" else detour.without_window()
    return {"formula": formula, "executed": took[True], "unstamped": took[False]}


def _from(figure: str) -> Callable[[Measured], float]:
    """After how long without items of s the window begins to pay."""

    def found_at(found: Measured) -> float:
        xs, with_window = found.line(figure, "since", window="with")
        _, without = found.line(figure, "since", window="without")
        return crossover(xs, [one - other for one, other in zip(with_window, without, strict=True)])

    return found_at


def _lines(found: Measured) -> list[Line]:
    labels = {"with": "with w_rs", "without": "without w_rs"}
    lines = [
        Line(f"{label}: {how}", *found.line(figure, "since", window=window))
        for window, label in labels.items()
        for figure, how in (("executed", "executed"), ("formula", "equations 1 and 2"))
    ]
    where = _from("executed")(found)
    xs, ys = found.line("executed", "since", window="without")
    return [*lines, Line("crossover, executed", [where], [float(np.interp(where, xs, ys))])]


WAITING = Experiment(
    name="waiting",
    title="Waiting for an intermediate window",
    setup=(
        "(r ⋈_b s) ⋈_ac t with and without w_rs: one item of r long ago, one of s, and after a time Δt one of t, which "
        "meets it. A recorder takes 1 an item and a join 2 (chosen). By the equations, and as executed on the "
        "scheduling graph with the timestamp rule, where each operation starts as soon as no edge enters it and no "
        "other item's work takes from its speed. As in the paper, the recording in w_out is left out."
    ),
    points=points,
    measure=measure,
    plots=(Plot("waiting", "Time of an item of t", "Δt from d_s to d_t", "time of d_t until joined", _lines),),
    claims=(
        Claim(
            "equations",
            "T_t = τ_->w_t + τ_⋈w_rs + τ_wait with the window, τ_->w_t + τ_⋈w_s + f_s τ_⋈w_r without.",
            "T_t and T'_t",
            lambda found: max(abs(row.figures["executed"] - row.figures["formula"]) for row in found.rows),
            near(0, 1e-9),
            reading="Shown is the largest deviation of what is executed; a wait below 0 is none.",
            others={
                "without the timestamp rule": lambda found: max(
                    abs(row.figures["unstamped"] - row.figures["formula"]) for row in found.rows
                )
            },
        ),
        Claim(
            "pays from",
            "The window pays once d_t waits less than τ_⋈w_s + f_s τ_⋈w_r − τ_⋈w_rs: here 3 − Δt < 2.",
            "Δt > 1 (by hand)",
            _from("executed"),
            near(1, 1e-9),
            others={"equations": _from("formula"), "without the timestamp rule": _from("unstamped")},
        ),
    ),
)
