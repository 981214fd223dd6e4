"""Runs items concurrently in random interleavings, and checks under which rules the results equal the serial ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from dsms.dataflow import (
    DataflowExecution,
    Expression,
    Matrix,
    Order,
    Plan,
    StreamItem,
    has_conflict,
    input_streams,
    is_equal_every,
    is_order_invariant,
    is_order_preserving,
    number_operations,
    translate,
)
from dsms.papers.claim import Claim, band_from, band_near
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.getta_vossough.workload import DIFFERENCE, THREE
from dsms.papers.measurements import Measurements

VALUES = 2  # distinct values of each attribute: few, so that items join
ITEMS = 8


@dataclass(frozen=True)
class ConcurrencyCase:
    """A plan and the rules under which its items run concurrently."""

    label: str
    query: Expression
    order: Order
    stored: tuple[str, ...] = ()  # joins that have an intermediate window
    timestamps: bool = True  # operations read only rows with lower timestamps
    raised: bool = True  # late intermediate results get a higher timestamp
    loose: bool = False  # edges on w_rs and w_out only

    @property
    def plan(self) -> Plan:
        return translate(self.query, self.stored)

    @property
    def execution(self) -> DataflowExecution:
        matrix = self._loose_conflicts() if self.loose else None
        return DataflowExecution(self.plan, self.order, self.timestamps, self.raised, conflicts=matrix)

    def _loose_conflicts(self) -> Matrix:
        operations = [operation for _, operation in number_operations(self.plan)]
        settled = frozenset(f"w_{stream}" for stream in self.query.streams)
        return tuple(
            tuple(one == other or has_conflict(one, other, settled) for other in operations) for one in operations
        )


CASES = {
    "free": ConcurrencyCase("no rule,\nno\ngraph", THREE, "weak", timestamps=False),
    "weak": ConcurrencyCase("rule,\nno\ngraph", THREE, "weak"),
    "difference": ConcurrencyCase("r − s:\nrule,\nno\ngraph", DIFFERENCE, "weak"),
    "unraised": ConcurrencyCase("w_rs:\nnot\nraised", THREE, "weak", ("rs",), raised=False),
    "raised": ConcurrencyCase("w_rs:\nraised", THREE, "weak", ("rs",)),
    "loose": ConcurrencyCase("w_rs:\nloose\ngraph", THREE, "preserving", ("rs",), loose=True),
    "preserving-rs": ConcurrencyCase("w_rs:\ngraph,\nrule", THREE, "preserving", ("rs",)),
    "preserving": ConcurrencyCase("graph,\nrule", THREE, "preserving"),
    "graph": ConcurrencyCase("graph,\nno rule", THREE, "preserving", timestamps=False),
    "every-2": ConcurrencyCase("k = 2", THREE, 2),
    "every-4": ConcurrencyCase("k = 4", THREE, 4),
}


def points(scale: Scale) -> Sequence[Point]:
    return [
        {"case": case, "place": place, "runs": scale.of(300, 60), "seed": seed}
        for seed in scale.numbers()
        for place, case in enumerate(CASES)
    ]


def measure(point: Point) -> dict[str, Any]:
    """Run random items in random interleavings and serially, and compare; shares are of runs or of results."""
    case, random = CASES[point["case"]], Random(point["seed"])
    serial = DataflowExecution(case.plan, "serial")
    counts: Counter[str] = Counter()
    for _ in range(point["runs"]):
        items = _draw_items(case.query, random)
        run, expected = case.execution.run(items, random.randrange(1 << 30)), serial.run(items)
        counts["wrong"] += run.final != expected.final
        counts["lost"] += sum((Counter(expected.final) - Counter(run.final)).values())
        counts["doubled"] += sum((Counter(run.final) - Counter(expected.final)).values())
        counts["results"] += sum(expected.final.values())
        counts["preserving"] += is_order_preserving(run.states, expected.states)
        counts["every_2"] += is_equal_every(2, run.states, expected.states)
        counts["every_4"] += is_equal_every(4, run.states, expected.states)
    shares = {name: counts[name] / point["runs"] for name in ("wrong", "preserving", "every_2", "every_4")}
    return {**shares, **{name: counts[name] / counts["results"] for name in ("lost", "doubled")}}


def _draw_items(query: Expression, random: Random, count: int = ITEMS) -> list[StreamItem]:
    streams = list(input_streams(query))
    drawn = [random.choice(streams) for _ in range(count)]
    return [StreamItem(stream.name, {name: random.randrange(VALUES) for name in stream.attributes}) for stream in drawn]


def _of(figure: str, case: str) -> Callable[[Measurements], float]:
    return lambda measured: measured.value(figure, case=case)


def _bars(*figures: tuple[str, str]) -> Callable[[Measurements], list[PlotLine]]:
    return lambda measured: [PlotLine(label, *measured.line(figure, "place")) for figure, label in figures]


LABELS = [case.label for case in CASES.values()]
CONCURRENT = Experiment(
    name="concurrent",
    title="Concurrent items and their results",
    setup=(
        f"{ITEMS} random items of (r ⋈_b s) ⋈_ac t, or of r −_x s, with {VALUES} values per attribute, all arrive at "
        "once; windows only grow. Of the operations that may start, a random one runs next. Every state of w_out is "
        "compared with that of a serial run of the same items."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot(
            "concurrent",
            "Runs that end wrong, and results that are lost or too many",
            "how items run",
            "share of runs, or of results",
            _bars(("wrong", "runs that end wrong"), ("lost", "results lost"), ("doubled", "results too many")),
            bars=True,
            ticks=LABELS,
        ),
    ),
    claims=(
        Claim(
            "no rule",
            "Conflicting operations that run in any order give other results than the serial execution.",
            "some are wrong",
            _of("wrong", "free"),
            band_from(0.01),
            reading="Ours: the share of runs whose final result is wrong.",
        ),
        Claim(
            "no graph needed",
            "Order-invariant expressions without intermediate windows need no scheduling graph, only timestamps.",
            "none is wrong",
            lambda measured: max(_of("wrong", case)(measured) for case in ("weak", "difference")),
            band_near(0, 0),
            reading="Ours: the share of runs whose final result is wrong, of the join and of the difference.",
        ),
        Claim(
            "not raised",
            "A later item misses an intermediate result that is written after the item was compared with the window.",
            "results are lost",
            _of("lost", "unraised"),
            band_from(0.01),
            reading="Ours: the share of results that are lost if timestamps are not raised.",
        ),
        Claim(
            "raised",
            "If that result gets a timestamp above the highest compared with the window, nothing is lost.",
            "none is lost",
            _of("wrong", "raised"),
            band_near(0, 0),
            reading=(
                "Ours: the share of runs whose final result is wrong. Timestamps are raised strictly above the "
                "highest: a row with an equal timestamp would not be read."
            ),
        ),
        Claim(
            "order preserving",
            "With the scheduling graph every state of w_out is that of the serial execution.",
            "always",
            lambda measured: min(
                _of("preserving", case)(measured) for case in ("graph", "preserving", "preserving-rs")
            ),
            band_near(1, 0),
            reading="Ours: the least share of such runs, with and without the timestamp rule and w_rs.",
            others={
                "by timestamps alone": _of("preserving", "weak"),
                "inputs recorded in any order": _of("preserving", "loose"),
            },
        ),
        Claim(
            "k-level",
            "If each group of k items waits for the one before, outputs equal the serial ones after every k items.",
            "always",
            lambda measured: min(_of(f"every_{k}", f"every-{k}")(measured) for k in (2, 4)),
            band_near(1, 0),
            reading="Ours: the least share of such runs, for k of 2 and 4.",
            others={"without waiting, k = 4": _of("every_4", "weak")},
        ),
        Claim(
            "loose inputs",
            "With w_rs and timestamps, edges remain only on w_rs and w_out: no recorder of an input has to wait.",
            "none is wrong",
            _of("wrong", "loose"),
            band_near(0, 0),
            reading="Ours: the share of runs whose final result is wrong with a graph of only these edges.",
            because=(
                "Edges on w_rs follow the order of arrival, timestamps that of recording. An item of s that arrived "
                "after one of t but was recorded before it does not read it, and t did not wait for it: their result "
                "is lost. So our recorders of inputs keep the order of arrival as well where w_rs is stored."
            ),
            others={"inputs recorded in order": _of("wrong", "preserving-rs")},
        ),
    ),
)


def invariance_points(scale: Scale) -> Sequence[Point]:
    return [{"rows": rows, "sets": scale.of(30, 8), "seed": seed} for seed in scale.numbers() for rows in (0, 2)]


def invariance(point: Point) -> dict[str, Any]:
    """The share of sets of items whose final result is the same in every order; 0 rows: windows only grow."""
    plan, random = translate(THREE), Random(point["seed"])
    rows = {name: int(point["rows"]) for name in THREE.streams if point["rows"]}
    sets = [_draw_items(THREE, random, 9) for _ in range(point["sets"])]
    return {"invariant": float(np.mean([is_order_invariant(plan, items, rows=rows, limit=40) for items in sets]))}


INVARIANCE = Experiment(
    name="invariance",
    title="Order invariance",
    setup="Sets of 9 items of (r ⋈_b s) ⋈_ac t in 40 orders each, in windows that only grow and in windows of 2 rows.",
    points=invariance_points,
    measure=invariance,
    claims=(
        Claim(
            "order invariant",
            "An expression of joins gives the same final result for every permutation of a finite input.",
            "always",
            lambda measured: measured.value("invariant", rows=0),
            band_near(1, 0),
            reading="Ours: the share of sets of items for which that holds, in windows that only grow.",
            others={"windows of 2 rows": lambda measured: measured.value("invariant", rows=2)},
        ),
    ),
)
