"""Every order of a stream's operations: how many there are, the formula's time T_δ of each, and the executed time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from dsms.dataflow import Dataflow, JoinTerm, dataflow_time, enumerate_orders, enumerate_plans, input_streams
from dsms.papers.claim import Claim, band_below, band_from, band_near, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.getta_vossough.workload import THREE, WITHOUT, Workload, result_times, with_flow, work
from dsms.papers.measurements import Measurements

TIMES = {"record": 1.0, "join": 2.0, "left": 2.0, "right": 2.0}
WORKLOADS = {
    "join": Workload(THREE, {"r": 8, "s": 12, "t": 16}, {"a": 12, "b": 6, "c": 8}, TIMES),
    "difference": Workload(WITHOUT, {"r": 12, "s": 8, "t": 6}, {"b": 6, "c": 8}, TIMES),
}
FLOWS: list[tuple[str, Dataflow]] = [
    (name, flow)
    for name, workload in WORKLOADS.items()
    for stream in input_streams(workload.query)
    for flow in enumerate_orders(workload.query, stream.name)
]


def points(scale: Scale) -> Sequence[Point]:
    """One point per order; orders of the same `query` and `stream` are alternatives."""
    return [
        {"order": i, "query": name, "stream": flow.stream, "items": scale.of(300, 80), "seed": seed}
        for seed in scale.numbers()
        for i, (name, flow) in enumerate(FLOWS)
    ]


def measure(point: Point) -> dict[str, Any]:
    """Run items of all streams in turn, and measure those of one stream, whose operations have this order."""
    name, flow = FLOWS[point["order"]]
    workload = WORKLOADS[name]
    plan, items = with_flow(workload.query, flow), workload.items("rst" * point["items"], point["seed"])
    measured = [i for i, item in enumerate(items) if i >= workload.before and item.stream == flow.stream]
    block = work(workload, plan, workload.run(plan, items))
    outs = result_times(workload, plan, workload.run(plan, items, "item"))
    fruitful = [i for i in measured if outs[i]]  # items that have results
    results = [after for i in fruitful for after in outs[i]]
    return {
        "block": float(np.mean([block[i] for i in measured])),
        "block_results": float(np.average([block[i] for i in fruitful], weights=[len(outs[i]) for i in fruitful])),
        "item": float(np.mean(results)),
        "item_each": float(np.mean([np.mean(outs[i]) for i in fruitful])),
        "item_first": float(np.mean([outs[i][0] for i in fruitful])),
        "block_formula": dataflow_time(flow, workload.estimate, "block"),
        "item_formula": dataflow_time(flow, workload.estimate, "item"),
    }


def count_plans(point: Point) -> dict[str, Any]:
    """The number of plans of the join of three streams, and how many give other results than the first."""
    workload = WORKLOADS["join"]
    items = workload.items("rst" * point["items"], point["seed"])
    every = list(enumerate_plans(THREE))
    finals = [workload.run(plan, items).final for plan in every]
    return {
        "logical": _logical_plans(),
        "expressions": sum(len(list(enumerate_orders(THREE, stream.name))) for stream in input_streams(THREE)),
        "plans": len(set(every)),
        "results": len(finals[0]),
        "different": sum(final != finals[0] for final in finals),
    }


def _logical_plans() -> int:
    """The number of expressions with two joins of the three streams, without regard to left and right."""
    inner_pairs = set()
    for one, two, three in permutations(input_streams(THREE)):
        inner = JoinTerm(one, two, sorted(set(one.attributes) & set(two.attributes)))
        JoinTerm(inner, three, sorted(set(inner.attributes) & set(three.attributes)))
        inner_pairs.add(frozenset((one.name, two.name)))
    return len(inner_pairs)


def _deviation(mode: str, figure: str) -> Callable[[Measurements], float]:
    """The largest relative deviation of the executed time from the formula."""
    return lambda measured: max(abs(row.figures[figure] / row.figures[f"{mode}_formula"] - 1) for row in measured.rows)


def _best_order_agreement(measured: Measurements) -> float:
    """The share of choices between orders, in both modes, where the order of least T_δ also took the least time."""
    agree = []
    for query, stream in {(row.point["query"], row.point["stream"]) for row in measured.rows}:
        rows = measured.where(query=query, stream=stream).rows
        if len(rows) > 1:
            for mode in ("block", "item"):
                executed = [row.figures[mode] for row in rows]
                predicted = [row.figures[f"{mode}_formula"] for row in rows]
                agree.append(executed.index(min(executed)) == predicted.index(min(predicted)))
    return float(np.mean(agree))


def _bars(measured: Measurements) -> list[PlotLine]:
    labels = {
        "block_formula": "T_δ, block mode",
        "block": "executed, block mode",
        "item_formula": "T_δ, item mode",
        "item": "executed, item mode",
    }
    return [PlotLine(label, *measured.line(figure, "order")) for figure, label in labels.items()]


def _short(flow: Dataflow) -> str:
    """A label of several lines: the stream and its operations without the recorders, as `s:`, `−t`, `⋈r`."""
    signs = {"join": "⋈", "left": "−", "right": "−"}
    return "\n".join([f"{flow.stream}:", *(signs[op.kind] + op.window[2:] for op in flow.operations[1:-1])])


ORDERS = Experiment(
    name="orders",
    title="T_δ of every order, and the time it takes",
    setup=(
        "(r(ab) ⋈_b s(bc)) ⋈_ac t(ac) and (r(ab) ⋈_b s(bc)) −_c t(cd), each stream's operations in every order that "
        "its attributes allow. Windows are full: of r, s, t 8, 12, 16 rows for the join and 12, 8, 6 for the "
        "difference; a, b, c have 12, 6, 8 equally frequent values; a recorder takes 1 per item, an operation that "
        "reads a window 2 (all chosen: the paper has no numbers). f_i follows from these; a recorder puts out 2, as "
        "each new row evicts one. Executed: the mean over items of their operations' time (block mode), and the mean "
        "over results of the time from their item's start (item mode)."
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
            band_up_to(0.1),
            quick=band_up_to(0.2),
            reading="Ours: the largest deviation over all orders, as a share of T_δ.",
        ),
        Claim(
            "item time",
            "T_δ is the average time that an item takes through a dataflow expression in item mode.",
            "T_δ, to a tenth",
            _deviation("item", "item"),
            band_up_to(0.1),
            quick=band_up_to(0.1),
            reading="Ours: the largest deviation over all orders, as a share of T_δ.",
            because=(
                "The formula uses averages where numbers of outputs vary. Most results come from items with many "
                "partners, which take longer; items without results count in T_δ, but have no time here. With "
                "constant f the formula is exact (see transit)."
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
            _best_order_agreement,
            band_near(1, 0),
            quick=band_from(0.875),
            reading="Ours: the share of streams with several orders, in both modes, where that order took least time.",
        ),
        Claim(
            "item mode",
            "An operation that starts as soon as there is an item shortens the time of an expression.",
            "T_δ in item mode is less",
            lambda measured: max(row.figures["item"] / row.figures["block_results"] for row in measured.rows),
            band_below(1),
            reading="Ours: the mean time of the same results in item mode over that in block mode, the largest of all "
            "orders.",
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
    measure=count_plans,
    claims=(
        Claim(
            "logical plans",
            "There are three plans at the logical level.",
            "3",
            lambda measured: measured.value("logical"),
            band_near(3, 0),
        ),
        Claim(
            "dataflow plans",
            "There are six plans at the level of dataflow.",
            "6",
            lambda measured: measured.value("expressions"),
            band_near(6, 0),
            reading="There are six expressions, two for each stream. A plan has one per stream: eight combinations.",
            others={"combinations of expressions": lambda measured: measured.value("plans")},
        ),
        Claim(
            "same results",
            "Operations commute: in any order, the results are the same.",
            "0 plans differ",
            lambda measured: measured.value("different"),
            band_near(0, 0),
        ),
    ),
)
