"""A difference taken before a join: δ_s of (r ⋈_b s) −_c t in its two orders, over what the join puts out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsms.dataflow import duration_of, orders
from dsms.papers.claim import Claim, below, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale, over
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.workload import WITHOUT, Workload, with_flow, work
from dsms.papers.measured import Measured

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
    """The mean time spent on an item of s, by the formula and as executed."""
    workload = Workload(WITHOUT, {"r": point["rows"], "s": 8, "t": 4}, VALUES, TIMES)
    flow = {flow.operations[1].kind: flow for flow in orders(WITHOUT, "s")}[
        "left" if point["first"] == "difference" else "join"
    ]
    plan, items = with_flow(WITHOUT, flow), workload.items("rst" * point["items"], point["seed"])
    spent = work(workload, plan, workload.run(plan, items))
    return {
        "executed": float(np.mean([spent[i] for i in range(workload.before, len(items)) if items[i].stream == "s"])),
        "block": duration_of(flow, workload.estimate, "block"),
        "item": duration_of(flow, workload.estimate, "item"),
    }


def gain(found: Measured, figure: str, fanout: float) -> float:
    """The time with the difference first as a share of that with the join first."""
    first, last = (found.value(figure, first=order, fanout=fanout) for order in ("difference", "join"))
    return first / last


def _worst(figure: str, least: float) -> Callable[[Measured], float]:
    """The largest of these shares over joins that put out at least so much."""
    return lambda found: max(gain(found, figure, fan) for fan in found.values("fanout") if fan >= least)


def _crossing(figure: str) -> Callable[[Measured], float]:
    """Up to what the join puts out for an item, it is the join that should come first."""

    def found_at(found: Measured) -> float:
        fans = found.values("fanout")
        return crossover(fans, [gain(found, figure, fan) - 1 for fan in fans])

    return found_at


def _lines(found: Measured) -> list[Line]:
    lines = [
        *over("executed", "fanout", "first", {first: f"{order}: executed" for first, order in ORDERS.items()})(found),
        *over("block", "fanout", "first", {first: f"{order}: T_δ" for first, order in ORDERS.items()})(found),
    ]
    where = _crossing("executed")(found)
    xs, ys = found.line("executed", "fanout", first="join")
    return [*lines, Line("crossover, executed", [where], [float(np.interp(where, xs, ys))])]


DIFFERENCE_FIRST = Experiment(
    name="difference",
    title="The difference before the join",
    setup=(
        "δ_s of (r(ab) ⋈_b s(bc)) −_c t(cd) in its two orders. w_s has 8 rows and w_t 4, w_r from 2 to 32, so that "
        "the join puts out between 1/4 and 4 for an item; b and c have 8 values each; a recorder takes 1 an item, the "
        "join and the difference 2 (all chosen). Executed: the mean time spent on an item of s."
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
            below(1),
            reading=(
                "For joins that put out one item for one or more. Shown is the time with −_c first over that with ⋈_b "
                "first, as executed, where it is largest; the others are T_δ."
            ),
            others={"T_δ in block mode": _worst("block", 1), "T_δ in item mode": _worst("item", 1)},
        ),
        Claim(
            "always cheaper first",
            "δ_s improves with −_c before ⋈_b, as −_c puts out at most one item for one.",
            "less time",
            _worst("executed", 0),
            below(1),
            reading="For any join, also one that puts out less than one for one.",
            because=(
                "At most one is not less than what a join puts out: where the join finds partners for fewer items "
                "than the difference lets through, the join first is quicker, by the formula as by execution."
            ),
            others={"T_δ in block mode": _worst("block", 0), "T_δ in item mode": _worst("item", 0)},
        ),
        Claim(
            "crossover",
            "The order of the least T_δ is the best: the difference first, once the join puts out more than it.",
            "(1 − 1/8)⁴ = 0.586",
            _crossing("executed"),
            near(0.586, 0.1),
            quick=near(0.586, 0.2),
            reading="From how many outputs of the join on the difference first is quicker, as executed.",
            others={"T_δ in block mode": _crossing("block"), "T_δ in item mode": _crossing("item")},
        ),
    ),
)
