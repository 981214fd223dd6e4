"""Dashed edges between pending items, with and without the timestamp rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from random import Random
from typing import Any

import numpy as np

from dsms.dataflow import (
    Execution,
    Expression,
    Item,
    Plan,
    SchedulingGraph,
    conflict_matrix,
    edges,
    inputs,
    numbered,
    pairs,
    translate,
)
from dsms.papers.claim import Claim, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.getta_vossough.timed import finished
from dsms.papers.getta_vossough.workload import DIFFERENCE, THREE
from dsms.papers.measured import Measured

QUERIES: dict[str, tuple[Expression, tuple[str, ...]]] = {  # with what is stored
    "difference": (DIFFERENCE, ()),
    "join": (THREE, ()),
    "join with w_rs": (THREE, ("rs",)),
}
VALUES = 4
TIMES = {"record": 1.0, "join": 2.0, "left": 2.0, "right": 2.0}


def points(scale: Scale) -> Sequence[Point]:
    """Items of all streams in turn; -right as the paper prints it, or with the look into its own window it lacks."""
    return [
        {"plan": plan, "pending": pending, "checked": checked, "seed": seed}
        for seed in scale.numbers()
        for plan in QUERIES
        for pending in range(1, scale.of(24, 12) + 1)
        for checked in ((False, True) if plan == "difference" else (True,))
    ]


def measure(point: Point) -> dict[str, Any]:
    """The edges of so many pending items, and which conflicts the rule leaves."""
    query, checked = QUERIES[point["plan"]], point["checked"]
    plan = translate(*query)
    pending = list(islice(cycle(flow.stream for flow in plan), point["pending"]))
    loose = SchedulingGraph.of(plan, Execution(plan, "weak").matrix)
    for stream in pending:
        loose = loose.arrive(stream)
    operations = [operation for _, operation in numbered(plan)]
    arrivals = {f"w_{flow.stream}" for flow in plan}
    left = pairs(conflict_matrix(plan, timestamps=True, checked=checked))
    return {
        "without": edges(plan, pending, timestamps=False, checked=checked),
        "with": edges(plan, pending, timestamps=True, checked=checked),
        "relaxed": loose.waits,
        "conflicts": len(pairs(conflict_matrix(plan, checked=checked))),
        **{f"time_{name}": value for name, value in _times(query[0], plan, pending, point["seed"]).items()},
        "on_inputs": sum({operations[i - 1].window, operations[j - 1].window} <= arrivals for i, j in left),
    }


def _times(query: Expression, plan: Plan, pending: Sequence[str], seed: int) -> dict[str, float]:
    """When the items are through on the average, if all came at once and each operation has a processor."""
    chance = Random(seed)
    streams = {stream.name: stream for stream in inputs(query)}
    items = [Item(name, {at: chance.randrange(VALUES) for at in streams[name].attributes}) for name in pending]
    run = Execution(plan, "serial").run(items)
    size = len(numbered(plan))
    matrices = {
        "serial": ((True,) * size,) * size,
        "without": conflict_matrix(plan),
        "with": conflict_matrix(plan, timestamps=True),
        "relaxed": ((False,) * size,) * size,
    }
    found = {}
    for name, matrix in matrices.items():
        done = finished(plan, run, pending, [0.0] * len(items), TIMES, matrix)
        found[name] = float(np.mean([max(ends.values()) for ends in done]))
    return found


def _edges(figure: str, plan: str, pending: int, checked: bool = True) -> Callable[[Measured], float]:
    return lambda found: found.value(figure, plan=plan, pending=pending, checked=checked)


def _lines(found: Measured) -> list[Line]:
    names = {"difference": "r −_x s", "join": "(r ⋈ s) ⋈ t", "join with w_rs": "(r ⋈ s) ⋈ t with w_rs"}
    rules = {"without": "no rule", "with": "timestamp rule", "relaxed": "timestamp rule, order relaxed"}
    return [
        Line(f"{label}: {rule}", *found.line(figure, "pending", plan=plan, checked=plan != "difference"))
        for plan, label in names.items()
        for figure, rule in rules.items()
        if figure != "relaxed" or plan == "join"
    ]


def _times_drawn(found: Measured) -> list[Line]:
    rules = {
        "serial": "one after the other",
        "without": "no rule",
        "with": "timestamp rule",
        "relaxed": "timestamp rule, order relaxed",
    }
    return [Line(rule, *found.line(f"time_{name}", "pending", plan="join")) for name, rule in rules.items()]


def _most(found: Measured, one: str, other: str) -> float:
    """One figure over another, of the join with the most items pending."""
    most = found.values("pending")[-1]
    return found.value(one, plan="join", pending=most) / found.value(other, plan="join", pending=most)


EDGES = Experiment(
    name="edges",
    title="Dashed edges of pending items",
    setup=(
        "The scheduling graphs of r −_x s and of (r ⋈_b s) ⋈_ac t with and without w_rs, with so many items of their "
        "streams in turn pending, none of them begun. The order relaxed: results may be written in any order, as far "
        "as timestamps decide what they are. Times: all items come at once, a recorder takes 1 an item and what reads "
        "a window 2, attributes have 4 values (chosen), and each operation starts as soon as no edge enters it; how "
        "much it has to do is that of the items one after the other."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot("dashed-edges", "Dashed edges over pending items", "pending items", "dashed edges", _lines),
        Plot("waits", "Time of items that come at once", "pending items", "mean time until through", _times_drawn),
    ),
    claims=(
        Claim(
            "conflicts",
            "The operations of r −_x s conflict in the pairs (1,5), (2,4) and (3,6), and each with itself.",
            "3 pairs",
            _edges("conflicts", "difference", 3, checked=False),
            near(3, 0),
            reading=(
                "−right as printed does not look whether an equal item of s is already there and then takes away "
                "twice; the corrected one reads w_s, too, which is one more pair."
            ),
            others={"−right corrected": _edges("conflicts", "difference", 3)},
        ),
        Claim(
            "edges of r, s, r",
            "Items of r, s and r pending give dashed edges for every conflict of an earlier with a later item.",
            "9 (by hand)",
            _edges("without", "difference", 3, checked=False),
            near(9, 0),
            others={"−right corrected": _edges("without", "difference", 3)},
        ),
        Claim(
            "input windows",
            "If only items with lower timestamps are read, no conflicts are left on the windows of input streams.",
            "0 conflicts",
            lambda found: max(_edges("on_inputs", plan, 3)(found) for plan in ("difference", "join")),
            near(0, 0),
            reading="Pairs of different operations on input windows, of the difference and of the join without w_rs.",
        ),
        Claim(
            "writers of results",
            "Conflicts of those that write w_out remain, unless the order of results is relaxed.",
            "0 if relaxed",
            _edges("relaxed", "join", 12),
            near(0, 0),
            reading="Dashed edges of 12 pending items of the join without w_rs, its order relaxed.",
            others={"not relaxed": _edges("with", "join", 12), "no timestamp rule": _edges("without", "join", 12)},
        ),
        Claim(
            "quality",
            "The number of dashed edges measures how good a plan is: with fewer of them items wait less.",
            "less time with the rule",
            lambda found: _most(found, "time_with", "time_without"),
            (0, 0.999),
            reading="The mean time of items of the join, with the timestamp rule over without it, most items pending.",
            others={
                "dashed edges": lambda found: _most(found, "with", "without"),
                "order relaxed": lambda found: _most(found, "time_relaxed", "time_without"),
            },
        ),
    ),
)
