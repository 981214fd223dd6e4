"""Counts dashed edges of the scheduling graph between pending items, with and without the timestamp rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from random import Random
from typing import Any

import numpy as np

from dsms.dataflow import (
    DataflowExecution,
    Expression,
    Plan,
    SchedulingGraph,
    StreamItem,
    conflict_matrix,
    conflicting_pairs,
    count_dashed_edges,
    input_streams,
    number_operations,
    translate,
)
from dsms.papers.claim import Claim, band_near
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.getta_vossough.timed import finish_times
from dsms.papers.getta_vossough.workload import DIFFERENCE, THREE
from dsms.papers.measurements import Measurements

QUERIES: dict[str, tuple[Expression, tuple[str, ...]]] = {  # the expression, and the joins with a stored window
    "difference": (DIFFERENCE, ()),
    "join": (THREE, ()),
    "join with w_rs": (THREE, ("rs",)),
}
VALUES = 4  # distinct values of each attribute
TIMES = {"record": 1.0, "join": 2.0, "left": 2.0, "right": 2.0}


def points(scale: Scale) -> Sequence[Point]:
    """Numbers of pending items; −right as printed, or `checked`: reading its own window too, as it must."""
    return [
        {"plan": plan, "pending": pending, "checked": checked, "seed": seed}
        for seed in scale.numbers()
        for plan in QUERIES
        for pending in range(1, scale.of(24, 12) + 1)
        for checked in ((False, True) if plan == "difference" else (True,))
    ]


def measure(point: Point) -> dict[str, Any]:
    """The dashed edges of the pending items, the conflicts that remain, and the mean time of an item."""
    query, checked = QUERIES[point["plan"]], point["checked"]
    plan = translate(*query)
    pending = list(islice(cycle(flow.stream for flow in plan), point["pending"]))
    loose = SchedulingGraph.of(plan, DataflowExecution(plan, "weak").matrix)
    for stream in pending:
        loose = loose.arrive(stream)
    operations = [operation for _, operation in number_operations(plan)]
    input_windows = {f"w_{flow.stream}" for flow in plan}
    remaining = conflicting_pairs(conflict_matrix(plan, timestamps=True, checked=checked))
    return {
        "without": count_dashed_edges(plan, pending, timestamps=False, checked=checked),
        "with": count_dashed_edges(plan, pending, timestamps=True, checked=checked),
        "relaxed": loose.waits,
        "conflicts": len(conflicting_pairs(conflict_matrix(plan, checked=checked))),
        **{f"time_{name}": value for name, value in _times(query[0], plan, pending, point["seed"]).items()},
        "on_inputs": sum({operations[i - 1].window, operations[j - 1].window} <= input_windows for i, j in remaining),
    }


def _times(query: Expression, plan: Plan, pending: Sequence[str], seed: int) -> dict[str, float]:
    """The mean time until an item is done, if all arrive at once and each operation has its own processor."""
    random = Random(seed)
    streams = {stream.name: stream for stream in input_streams(query)}
    items = [StreamItem(name, {at: random.randrange(VALUES) for at in streams[name].attributes}) for name in pending]
    run = DataflowExecution(plan, "serial").run(items)
    size = len(number_operations(plan))
    matrices = {
        "serial": ((True,) * size,) * size,
        "without": conflict_matrix(plan),
        "with": conflict_matrix(plan, timestamps=True),
        "relaxed": ((False,) * size,) * size,
    }
    means = {}
    for name, matrix in matrices.items():
        done = finish_times(plan, run, pending, [0.0] * len(items), TIMES, matrix)
        means[name] = float(np.mean([max(ends.values()) for ends in done]))
    return means


def _edges(figure: str, plan: str, pending: int, checked: bool = True) -> Callable[[Measurements], float]:
    return lambda measured: measured.value(figure, plan=plan, pending=pending, checked=checked)


def _lines(measured: Measurements) -> list[PlotLine]:
    names = {"difference": "r −_x s", "join": "(r ⋈ s) ⋈ t", "join with w_rs": "(r ⋈ s) ⋈ t with w_rs"}
    rules = {"without": "no rule", "with": "timestamp rule", "relaxed": "timestamp rule, order relaxed"}
    return [
        PlotLine(f"{label}: {rule}", *measured.line(figure, "pending", plan=plan, checked=plan != "difference"))
        for plan, label in names.items()
        for figure, rule in rules.items()
        if figure != "relaxed" or plan == "join"
    ]


def _time_lines(measured: Measurements) -> list[PlotLine]:
    rules = {
        "serial": "one after the other",
        "without": "no rule",
        "with": "timestamp rule",
        "relaxed": "timestamp rule, order relaxed",
    }
    return [PlotLine(rule, *measured.line(f"time_{name}", "pending", plan="join")) for name, rule in rules.items()]


def _ratio_at_end(measured: Measurements, one: str, other: str) -> float:
    """One figure over another, for the join with the most pending items."""
    most = measured.values("pending")[-1]
    return measured.value(one, plan="join", pending=most) / measured.value(other, plan="join", pending=most)


EDGES = Experiment(
    name="edges",
    title="Dashed edges of pending items",
    setup=(
        "The scheduling graphs of r −_x s and of (r ⋈_b s) ⋈_ac t, with and without w_rs, while items of their "
        "streams, in turn, are pending and none has started. Order relaxed means that results may be written in any "
        "order, where timestamps decide their content. Times: all items arrive at once, a recorder takes 1 per item "
        "and an operation that reads a window 2, attributes have 4 values (chosen). Each operation starts as soon as "
        "no edge enters it, and handles as many rows as in a serial run of the same items."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot("dashed-edges", "Dashed edges over pending items", "pending items", "dashed edges", _lines),
        Plot("waits", "Time of items that arrive at once", "pending items", "mean time until done", _time_lines),
    ),
    claims=(
        Claim(
            "conflicts",
            "The operations of r −_x s conflict in the pairs (1,5), (2,4) and (3,6), and each with itself.",
            "3 pairs",
            _edges("conflicts", "difference", 3, checked=False),
            band_near(3, 0),
            reading=(
                "−right as printed does not check whether s has an equal item already, and then removes a row twice. "
                "The corrected one also reads w_s, which adds one pair."
            ),
            others={"−right corrected": _edges("conflicts", "difference", 3)},
        ),
        Claim(
            "edges of r, s, r",
            "Pending items of r, s and r have a dashed edge for every conflict of an earlier with a later item.",
            "9 (by hand)",
            _edges("without", "difference", 3, checked=False),
            band_near(9, 0),
            others={"−right corrected": _edges("without", "difference", 3)},
        ),
        Claim(
            "input windows",
            "If operations read only items with lower timestamps, no conflicts remain on windows of input streams.",
            "0 conflicts",
            lambda measured: max(_edges("on_inputs", plan, 3)(measured) for plan in ("difference", "join")),
            band_near(0, 0),
            reading="Ours: pairs of different operations on input windows, for the difference and the join without "
            "w_rs.",
        ),
        Claim(
            "writers of results",
            "Conflicts of the writers of w_out remain, unless the order of results is relaxed.",
            "0 if relaxed",
            _edges("relaxed", "join", 12),
            band_near(0, 0),
            reading="Ours: dashed edges of 12 pending items of the join without w_rs, with relaxed order.",
            others={"not relaxed": _edges("with", "join", 12), "no timestamp rule": _edges("without", "join", 12)},
        ),
        Claim(
            "quality",
            "The number of dashed edges measures the quality of a plan: with fewer edges items wait less.",
            "less time with the rule",
            lambda measured: _ratio_at_end(measured, "time_with", "time_without"),
            (0, 0.999),
            reading="Ours: the mean time of items of the join with the timestamp rule over that without, at the "
            "greatest number of pending items.",
            others={
                "dashed edges": lambda measured: _ratio_at_end(measured, "with", "without"),
                "order relaxed": lambda measured: _ratio_at_end(measured, "time_relaxed", "time_without"),
            },
        ),
    ),
)
