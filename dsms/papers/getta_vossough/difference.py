"""Whether a difference should run before a join: δ_s of (r ⋈_b s) −_c t in both orders, by the join's fan-out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsms.dataflow import dataflow_time, enumerate_orders
from dsms.papers.claim import Claim, band_below, band_near
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale, lines_over
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.workload import WITHOUT, Workload, with_flow, work
from dsms.papers.measurements import Measurements

VALUES = {"b": 8, "c": 8}
TIMES = {"record": 1.0, "join": 2.0, "left": 2.0, "right": 2.0}
ORDERS = {"join": "⋈_b(w_r), −_c(w_t)", "difference": "−_c(w_t), ⋈_b(w_r)"}


def points(scale: Scale) -> Sequence[Point]:
    return [
        {"first": first, "fanout": rows / VALUES["b"], "rows": rows, "items": scale.of(300, 100), "seed": seed}
        for seed in scale.numbers()
        for rows in scale.of((2, 4, 6, 8, 12, 16, 24, 32), (2, 4, 8, 16, 32))
        for first in ORDERS
    ]


def measure(point: Point) -> dict[str, Any]:
    """The mean time spent on an item of s, as executed and by the formula."""
    workload = Workload(WITHOUT, {"r": point["rows"], "s": 8, "t": 4}, VALUES, TIMES)
    flow = {flow.operations[1].kind: flow for flow in enumerate_orders(WITHOUT, "s")}[
        "left" if point["first"] == "difference" else "join"
    ]
    plan, items = with_flow(WITHOUT, flow), workload.items("rst" * point["items"], point["seed"])
    spent = work(workload, plan, workload.run(plan, items))
    return {
        "executed": float(np.mean([spent[i] for i in range(workload.before, len(items)) if items[i].stream == "s"])),
        "block": dataflow_time(flow, workload.estimate, "block"),
        "item": dataflow_time(flow, workload.estimate, "item"),
    }


def gain(measured: Measurements, figure: str, fanout: float) -> float:
    """The time with the difference first over that with the join first."""
    first, last = (measured.value(figure, first=order, fanout=fanout) for order in ("difference", "join"))
    return first / last


def _worst(figure: str, least: float) -> Callable[[Measurements], float]:
    """The largest of these ratios over joins whose fan-out is at least `least`."""
    return lambda measured: max(gain(measured, figure, fan) for fan in measured.values("fanout") if fan >= least)


def _crossing(figure: str) -> Callable[[Measurements], float]:
    """The fan-out of the join up to which the join should run first."""

    def equal_at(measured: Measurements) -> float:
        fans = measured.values("fanout")
        return crossover(fans, [gain(measured, figure, fan) - 1 for fan in fans])

    return equal_at


def _lines(measured: Measurements) -> list[PlotLine]:
    lines = [
        *lines_over("executed", "fanout", "first", {first: f"{order}: executed" for first, order in ORDERS.items()})(
            measured
        ),
        *lines_over("block", "fanout", "first", {first: f"{order}: T_δ" for first, order in ORDERS.items()})(measured),
    ]
    where = _crossing("executed")(measured)
    xs, ys = measured.line("executed", "fanout", first="join")
    return [*lines, PlotLine("crossover, executed", [where], [float(np.interp(where, xs, ys))])]


DIFFERENCE_FIRST = Experiment(
    name="difference",
    title="The difference before the join",
    setup=(
        "δ_s of (r(ab) ⋈_b s(bc)) −_c t(cd) in its two orders. w_s has 8 rows and w_t 4, w_r from 2 to 32, so that "
        "the join puts out between 1/4 and 4 rows per item; b and c have 8 values each; a recorder takes 1 per item, "
        "the join and the difference 2 (all chosen). Executed is the mean time spent on an item of s."
    ),
    points=points,
    measure=measure,
    plots=(Plot("difference", "δ_s in two orders", "outputs of the join for an item", "time of an item of s", _lines),),
    claims=(
        Claim(
            "cheaper first",
            "δ_s improves with −_c before ⋈_b, as −_c puts out at most one item for one.",
            "less time",
            _worst("executed", 1),
            band_below(1),
            reading=(
                "For joins that put out one row per item or more. Ours: the executed time with −_c first over that "
                "with ⋈_b first, where it is largest."
            ),
            others={"T_δ in block mode": _worst("block", 1), "T_δ in item mode": _worst("item", 1)},
        ),
        Claim(
            "always cheaper first",
            "δ_s improves with −_c before ⋈_b, as −_c puts out at most one item for one.",
            "less time",
            _worst("executed", 0),
            band_below(1),
            reading="For any join, also one that puts out less than one row per item.",
            because=(
                "The difference puts out at most one row per item, but a join may put out fewer. Where the join passes "
                "fewer items than the difference, running the join first is quicker, by the formula and as executed."
            ),
            others={"T_δ in block mode": _worst("block", 0), "T_δ in item mode": _worst("item", 0)},
        ),
        Claim(
            "crossover",
            "The order of the least T_δ is the best: the difference first once the join puts out more than it.",
            "(1 − 1/8)⁴ = 0.586",
            _crossing("executed"),
            band_near(0.586, 0.1),
            quick=band_near(0.586, 0.2),
            reading="Ours: the join's outputs per item from which the difference first is quicker, as executed.",
            others={"T_δ in block mode": _crossing("block"), "T_δ in item mode": _crossing("item")},
        ),
    ),
)
