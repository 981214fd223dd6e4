"""The orders of a stream's operations: how many there are, what the formula says of each, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from dsms.dataflow import Dataflow, Join, duration_of, inputs, orders, plans
from dsms.papers.claim import Claim, at_least, at_most, below, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.getta_vossough.workload import THREE, WITHOUT, Workload, result_times, with_flow, work
from dsms.papers.measured import Measured

TIMES = {"record": 1.0, "join": 2.0, "left": 2.0, "right": 2.0}
WORKLOADS = {
    "join": Workload(THREE, {"r": 8, "s": 12, "t": 16}, {"a": 12, "b": 6, "c": 8}, TIMES),
    "difference": Workload(WITHOUT, {"r": 12, "s": 8, "t": 6}, {"b": 6, "c": 8}, TIMES),
}
FLOWS: list[tuple[str, Dataflow]] = [
    (name, flow)
    for name, workload in WORKLOADS.items()
    for stream in inputs(workload.query)
    for flow in orders(workload.query, stream.name)
]


def points(scale: Scale) -> Sequence[Point]:
    """One for each order; `query` and `stream` say which of them do the same."""
    return [
        {"order": i, "query": name, "stream": flow.stream, "items": scale.of(300, 80), "seed": seed}
        for seed in scale.numbers()
        for i, (name, flow) in enumerate(FLOWS)
    ]


def measure(point: Point) -> dict[str, Any]:
    """Items of all streams in turn; what is counted is one stream's, through one order of its operations."""
    name, flow = FLOWS[point["order"]]
    workload = WORKLOADS[name]
    plan, items = with_flow(workload.query, flow), workload.items("rst" * point["items"], point["seed"])
    mine = [i for i, item in enumerate(items) if i >= workload.before and item.stream == flow.stream]
    block = work(workload, plan, workload.run(plan, items))
    outs = result_times(workload, plan, workload.run(plan, items, "item"))
    some = [i for i in mine if outs[i]]
    results = [after for i in some for after in outs[i]]
    return {
        "block": float(np.mean([block[i] for i in mine])),
        "block_results": float(np.average([block[i] for i in some], weights=[len(outs[i]) for i in some])),
        "item": float(np.mean(results)),
        "item_each": float(np.mean([np.mean(outs[i]) for i in some])),
        "item_first": float(np.mean([outs[i][0] for i in some])),
        "block_formula": duration_of(flow, workload.estimate, "block"),
        "item_formula": duration_of(flow, workload.estimate, "item"),
    }


def different(point: Point) -> dict[str, Any]:
    """How many ways there are to work out the join of three, and how many of them find something else."""
    workload = WORKLOADS["join"]
    items = workload.items("rst" * point["items"], point["seed"])
    every = list(plans(THREE))
    finals = [workload.run(plan, items).final for plan in every]
    return {
        "logical": _logical_plans(),
        "expressions": sum(len(list(orders(THREE, stream.name))) for stream in inputs(THREE)),
        "plans": len(set(every)),
        "results": len(finals[0]),
        "different": sum(final != finals[0] for final in finals),
    }


def _logical_plans() -> int:
    """Expressions of two joins of the three streams, however their sides are turned."""
    found = set()
    for one, two, three in permutations(inputs(THREE)):
        inner = Join(one, two, sorted(set(one.attributes) & set(two.attributes)))
        Join(inner, three, sorted(set(inner.attributes) & set(three.attributes)))
        found.add(frozenset((one.name, two.name)))
    return len(found)


def _deviation(mode: str, figure: str) -> Callable[[Measured], float]:
    """How far what is executed is from the formula at most, as a share of it."""
    return lambda found: max(abs(row.figures[figure] / row.figures[f"{mode}_formula"] - 1) for row in found.rows)


def _agreeing(found: Measured) -> float:
    """The share of choices between orders, in both modes, in which the least T_δ is also what took least time."""
    agree = []
    for query, stream in {(row.point["query"], row.point["stream"]) for row in found.rows}:
        rows = found.where(query=query, stream=stream).rows
        if len(rows) > 1:
            for mode in ("block", "item"):
                took = [row.figures[mode] for row in rows]
                told = [row.figures[f"{mode}_formula"] for row in rows]
                agree.append(took.index(min(took)) == told.index(min(told)))
    return float(np.mean(agree))


def _bars(found: Measured) -> list[Line]:
    labels = {
        "block_formula": "T_δ, block mode",
        "block": "executed, block mode",
        "item_formula": "T_δ, item mode",
        "item": "executed, item mode",
    }
    return [Line(label, *found.line(figure, "order")) for figure, label in labels.items()]


def _short(flow: Dataflow) -> str:
    """What lies between the recorders, one below the other: `s:`, `−t`, `⋈r`."""
    signs = {"join": "⋈", "left": "−", "right": "−"}
    return "\n".join([f"{flow.stream}:", *(signs[op.kind] + op.window[2:] for op in flow.operations[1:-1])])


ORDERS = Experiment(
    name="orders",
    title="T_δ of every order, and the time it takes",
    setup=(
        "(r(ab) ⋈_b s(bc)) ⋈_ac t(ac) and (r(ab) ⋈_b s(bc)) −_c t(cd), each stream's operations in every order that "
        "its attributes allow. Windows are full: of r, s, t 8, 12, 16 rows for the join and 12, 8, 6 for the "
        "difference; a, b, c have 12, 6, 8 values, all as frequent; a recorder takes 1 an item, what reads a window 2 "
        "(all chosen: the paper has no numbers). f_i follows from these; a recorder puts out 2, as each new row drives "
        "one out. Executed: the mean over items of the time that operations took for them (block mode), and over "
        "results of when each was out after its item's start (item mode)."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot(
            "orders",
            "Time of an item by the order of its operations",
            "stream: order of operations (left: join of three, right: join and difference)",
            "time of an item",
            _bars,
            bars=True,
            ticks=[_short(flow) for _, flow in FLOWS],
        ),
    ),
    claims=(
        Claim(
            "block time",
            "T_δ is the average time that an item takes through a dataflow expression in block mode.",
            "T_δ, to a tenth",
            _deviation("block", "block"),
            at_most(0.1),
            quick=at_most(0.2),
            reading="Shown is the largest deviation over all orders, as a share of T_δ.",
        ),
        Claim(
            "item time",
            "T_δ is the average time that an item takes through a dataflow expression in item mode.",
            "T_δ, to a tenth",
            _deviation("item", "item"),
            at_most(0.1),
            quick=at_most(0.1),
            reading="Shown is the largest deviation over all orders, as a share of T_δ.",
            because=(
                "The formula takes averages where numbers of outputs vary: results come from the items that meet "
                "many, and these take longer; items of no result count in T_δ with half an item each and have no time "
                "here. With constant f it is exact (see transit)."
            ),
            others={
                "each item's mean result": _deviation("item", "item_each"),
                "each item's first result": _deviation("item", "item_first"),
            },
        ),
        Claim(
            "least",
            "The operations of an expression are best permuted to the order of the least T_δ.",
            "always",
            _agreeing,
            near(1, 0),
            quick=at_least(0.875),
            reading="The share of streams with several orders, in both modes, where that order took least time.",
        ),
        Claim(
            "item mode",
            "An operation that starts as soon as there is an item shortens the time of an expression.",
            "T_δ in item mode is less",
            lambda found: max(row.figures["item"] / row.figures["block_results"] for row in found.rows),
            below(1),
            reading="The mean time of the same results, item over block mode: the largest over all orders.",
        ),
    ),
)


def few_points(scale: Scale) -> Sequence[Point]:
    return [{"items": scale.of(60, 20), "seed": seed} for seed in scale.numbers()]


PLANS = Experiment(
    name="plans",
    title="How many plans a query has",
    setup=(
        "(r(ab) ⋈_b s(bc)) ⋈_ac t(ac): the ways to associate its joins, and the orders of dataflow operations. Each "
        "combination of orders is executed on the same items, with windows of 8, 12 and 16 rows."
    ),
    points=few_points,
    measure=different,
    claims=(
        Claim(
            "logical plans",
            "There are three plans at the logical level.",
            "3",
            lambda found: found.value("logical"),
            near(3, 0),
        ),
        Claim(
            "dataflow plans",
            "There are six plans at the level of dataflow.",
            "6",
            lambda found: found.value("expressions"),
            near(6, 0),
            reading="Six are the expressions, two for each stream; as each stream has one of its two, plans are eight.",
            others={"combinations of expressions": lambda found: found.value("plans")},
        ),
        Claim(
            "same results",
            "Operations commute: whatever their order, the results are the same.",
            "0 plans differ",
            lambda found: found.value("different"),
            near(0, 0),
        ),
    ),
)
