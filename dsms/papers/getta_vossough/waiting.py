"""How long an item of t waits for the intermediate window of r ⋈ s, by the time since the last item of s arrived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsms.dataflow import StreamItem, WindowTradeoff, conflict_matrix, translate
from dsms.papers.claim import Claim, band_near
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.timed import finish_times
from dsms.papers.getta_vossough.workload import THREE, Workload
from dsms.papers.measurements import Measurements

TIMES = {"record": 1.0, "join": 2.0}
WORKLOAD = Workload(THREE, {"r": 1, "s": 1, "t": 1}, {"a": 1, "b": 1, "c": 1}, TIMES)
ITEMS = [StreamItem("r", {"a": 0, "b": 0}), StreamItem("s", {"b": 0, "c": 0}), StreamItem("t", {"a": 0, "c": 0})]
ARRIVAL_S = 100.0  # when d_s arrives, long after d_r
PLANS = {"with": translate(THREE, ["rs"]), "without": translate(THREE)}


def points(scale: Scale) -> Sequence[Point]:
    return [
        {"window": window, "since": since, "seed": seed}
        for seed in scale.numbers()
        for since in np.arange(0, 5.01, scale.of(0.25, 0.5)).tolist()
        for window in PLANS
    ]


def measure(point: Point) -> dict[str, Any]:
    """The time from d_t's arrival to its last join, by equations 1 and 2 and on the scheduling graph."""
    plan = PLANS[point["window"]]
    tradeoff = WindowTradeoff.of(WORKLOAD.estimate, PLANS["with"][2], PLANS["without"][2])
    run, arrives = WORKLOAD.run(plan, ITEMS), ARRIVAL_S + point["since"]
    executed = {}
    for timestamps in (True, False):
        matrix = conflict_matrix(plan, timestamps=timestamps)
        done = finish_times(plan, run, "rst", [0, ARRIVAL_S, arrives], TIMES, matrix)[2]
        executed[timestamps] = max(end for operation, end in done.items() if operation.window != "w_out") - arrives
    formula = tradeoff.with_window(point["since"]) if point["window"] == "with" else tradeoff.without_window()
    return {"formula": formula, "executed": executed[True], "unstamped": executed[False]}


def _pays_from(figure: str) -> Callable[[Measurements], float]:
    """The time since the last item of s from which the window pays."""

    def equal_at(measured: Measurements) -> float:
        xs, with_window = measured.line(figure, "since", window="with")
        _, without = measured.line(figure, "since", window="without")
        return crossover(xs, [one - other for one, other in zip(with_window, without, strict=True)])

    return equal_at


def _lines(measured: Measurements) -> list[PlotLine]:
    labels = {"with": "with w_rs", "without": "without w_rs"}
    lines = [
        PlotLine(f"{label}: {how}", *measured.line(figure, "since", window=window))
        for window, label in labels.items()
        for figure, how in (("executed", "executed"), ("formula", "equations 1 and 2"))
    ]
    where = _pays_from("executed")(measured)
    xs, ys = measured.line("executed", "since", window="without")
    return [*lines, PlotLine("crossover, executed", [where], [float(np.interp(where, xs, ys))])]


WAITING = Experiment(
    name="waiting",
    title="Waiting for an intermediate window",
    setup=(
        "(r ⋈_b s) ⋈_ac t with and without w_rs: one item of r long ago, one of s, and after a time Δt one of t, which "
        "joins with it. A recorder takes 1 per item and a join 2 (chosen). Computed by the equations, and executed on "
        "the scheduling graph with the timestamp rule, where each operation starts as soon as no edge enters it and "
        "has its own processor. As in the paper, the recording in w_out is left out."
    ),
    points=points,
    measure=measure,
    plots=(Plot("waiting", "Time of an item of t", "Δt from d_s to d_t", "time of d_t until joined", _lines),),
    claims=(
        Claim(
            "equations",
            "T_t = τ_->w_t + τ_⋈w_rs + τ_wait with the window, τ_->w_t + τ_⋈w_s + f_s τ_⋈w_r without.",
            "T_t and T'_t",
            lambda measured: max(abs(row.figures["executed"] - row.figures["formula"]) for row in measured.rows),
            band_near(0, 1e-9),
            reading="Ours: the largest deviation of the executed time; a wait below 0 counts as 0.",
            others={
                "without the timestamp rule": lambda measured: max(
                    abs(row.figures["unstamped"] - row.figures["formula"]) for row in measured.rows
                )
            },
        ),
        Claim(
            "pays from",
            "The window pays once d_t waits less than τ_⋈w_s + f_s τ_⋈w_r − τ_⋈w_rs: here 3 − Δt < 2.",
            "Δt > 1 (by hand)",
            _pays_from("executed"),
            band_near(1, 1e-9),
            others={"equations": _pays_from("formula"), "without the timestamp rule": _pays_from("unstamped")},
        ),
    ),
)
