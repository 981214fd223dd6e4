"""Items that run at once, in any interleaving: which results are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from dsms.dataflow import (
    Execution,
    Expression,
    Item,
    Matrix,
    Order,
    Plan,
    agrees_every,
    conflict,
    inputs,
    is_order_invariant,
    is_order_preserving,
    numbered,
    translate,
)
from dsms.papers.claim import Claim, at_least, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.getta_vossough.workload import DIFFERENCE, THREE
from dsms.papers.measured import Measured

VALUES = 2  # of each attribute: few, so that items meet
ITEMS = 8


@dataclass(frozen=True)
class Case:
    """How items go through which plan."""

    label: str
    query: Expression
    order: Order
    stored: tuple[str, ...] = ()
    timestamps: bool = True
    raised: bool = True
    loose: bool = False  # edges on w_rs and w_out only

    @property
    def plan(self) -> Plan:
        return translate(self.query, self.stored)

    @property
    def execution(self) -> Execution:
        matrix = self._loose() if self.loose else None
        return Execution(self.plan, self.order, self.timestamps, self.raised, conflicts=matrix)

    def _loose(self) -> Matrix:
        operations = [operation for _, operation in numbered(self.plan)]
        settled = frozenset(f"w_{stream}" for stream in self.query.streams)
        return tuple(tuple(one == other or conflict(one, other, settled) for other in operations) for one in operations)


CASES = {
    "free": Case("no rule,\nno\ngraph", THREE, "weak", timestamps=False),
    "weak": Case("rule,\nno\ngraph", THREE, "weak"),
    "difference": Case("r − s:\nrule,\nno\ngraph", DIFFERENCE, "weak"),
    "unraised": Case("w_rs:\nnot\nraised", THREE, "weak", ("rs",), raised=False),
    "raised": Case("w_rs:\nraised", THREE, "weak", ("rs",)),
    "loose": Case("w_rs:\nloose\ngraph", THREE, "preserving", ("rs",), loose=True),
    "preserving-rs": Case("w_rs:\ngraph,\nrule", THREE, "preserving", ("rs",)),
    "preserving": Case("graph,\nrule", THREE, "preserving"),
    "graph": Case("graph,\nno rule", THREE, "preserving", timestamps=False),
    "every-2": Case("k = 2", THREE, 2),
    "every-4": Case("k = 4", THREE, 4),
}


def points(scale: Scale) -> Sequence[Point]:
    return [
        {"case": case, "place": place, "runs": scale.of(300, 60), "seed": seed}
        for seed in scale.numbers()
        for place, case in enumerate(CASES)
    ]


def measure(point: Point) -> dict[str, Any]:
    """Random items in random interleavings, each beside the same items one after the other; shares are of runs."""
    case, chance = CASES[point["case"]], Random(point["seed"])
    serial = Execution(case.plan, "serial")
    counted: Counter[str] = Counter()
    for _ in range(point["runs"]):
        items = _items(case.query, chance)
        run, wanted = case.execution.run(items, chance.randrange(1 << 30)), serial.run(items)
        counted["wrong"] += run.final != wanted.final
        counted["lost"] += sum((Counter(wanted.final) - Counter(run.final)).values())
        counted["doubled"] += sum((Counter(run.final) - Counter(wanted.final)).values())
        counted["results"] += sum(wanted.final.values())
        counted["preserving"] += is_order_preserving(run.states, wanted.states)
        counted["every_2"] += agrees_every(2, run.states, wanted.states)
        counted["every_4"] += agrees_every(4, run.states, wanted.states)
    shares = {name: counted[name] / point["runs"] for name in ("wrong", "preserving", "every_2", "every_4")}
    return {**shares, **{name: counted[name] / counted["results"] for name in ("lost", "doubled")}}


def _items(query: Expression, chance: Random, count: int = ITEMS) -> list[Item]:
    streams = list(inputs(query))
    drawn = [chance.choice(streams) for _ in range(count)]
    return [Item(stream.name, {name: chance.randrange(VALUES) for name in stream.attributes}) for stream in drawn]


def _of(figure: str, case: str) -> Callable[[Measured], float]:
    return lambda found: found.value(figure, case=case)


def _bars(*figures: tuple[str, str]) -> Callable[[Measured], list[Line]]:
    return lambda found: [Line(label, *found.line(figure, "place")) for figure, label in figures]


LABELS = [case.label for case in CASES.values()]
CONCURRENT = Experiment(
    name="concurrent",
    title="Concurrent items and their results",
    setup=(
        f"{ITEMS} items of (r ⋈_b s) ⋈_ac t, or of r −_x s, drawn at random with {VALUES} values an attribute, all "
        "arriving at once into windows that grow; of the operations that may start, one drawn at random takes its "
        "turn. Every state of w_out is compared with that of the same items one after the other."
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
            "Operations that conflict and run at will give results other than those of the serial execution.",
            "some are wrong",
            _of("wrong", "free"),
            at_least(0.01),
            reading="The share of runs whose final result is wrong.",
        ),
        Claim(
            "no graph needed",
            "Order-invariant expressions without intermediate windows need no scheduling graph, only timestamps.",
            "none is wrong",
            lambda found: max(_of("wrong", case)(found) for case in ("weak", "difference")),
            near(0, 0),
            reading="Of the join and of the difference; the share of runs whose final result is wrong.",
        ),
        Claim(
            "not raised",
            "An intermediate result written after a later item was compared with its window is missed.",
            "results are lost",
            _of("lost", "unraised"),
            at_least(0.01),
            reading="The share of results that are lost without the raise.",
        ),
        Claim(
            "raised",
            "If it gets a timestamp above the highest compared with the window, nothing is lost.",
            "none is lost",
            _of("wrong", "raised"),
            near(0, 0),
            reading=(
                "The share of runs whose final result is wrong. Raised strictly above it: an equal timestamp "
                "would not be seen."
            ),
        ),
        Claim(
            "order preserving",
            "With the scheduling graph every state of w_out is that of the serial execution.",
            "always",
            lambda found: min(_of("preserving", case)(found) for case in ("graph", "preserving", "preserving-rs")),
            near(1, 0),
            reading="The least share of runs, with and without the timestamp rule and w_rs.",
            others={
                "by timestamps alone": _of("preserving", "weak"),
                "inputs recorded in any order": _of("preserving", "loose"),
            },
        ),
        Claim(
            "k-level",
            "If after every k items the next are held, the outputs agree with the serial ones after every k items.",
            "always",
            lambda found: min(_of(f"every_{k}", f"every-{k}")(found) for k in (2, 4)),
            near(1, 0),
            reading="The least share of runs, for k of 2 and 4.",
            others={"without holding, k = 4": _of("every_4", "weak")},
        ),
        Claim(
            "loose inputs",
            "With w_rs and timestamps, edges are left on w_rs and w_out only: no recorder of an input has to wait.",
            "none is wrong",
            _of("wrong", "loose"),
            near(0, 0),
            reading="The share of runs whose final result is wrong with a graph of these edges.",
            because=(
                "Edges on w_rs go by arrival, timestamps by recording. An item of s that came after one of t and was "
                "recorded before it does not see it, and t has not waited for it: their result is lost. So here "
                "recorders of inputs keep the order of arrival as well where w_rs is stored."
            ),
            others={"inputs recorded in order": _of("wrong", "preserving-rs")},
        ),
    ),
)


def invariance_points(scale: Scale) -> Sequence[Point]:
    return [{"rows": rows, "sets": scale.of(30, 8), "seed": seed} for seed in scale.numbers() for rows in (0, 2)]


def invariance(point: Point) -> dict[str, Any]:
    """The share of sets of items that give one final result in every order; 0 rows are windows that only grow."""
    plan, chance = translate(THREE), Random(point["seed"])
    rows = {name: int(point["rows"]) for name in THREE.streams if point["rows"]}
    sets = [_items(THREE, chance, 9) for _ in range(point["sets"])]
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
            lambda found: found.value("invariant", rows=0),
            near(1, 0),
            reading="In windows that only grow; the share of sets of items.",
            others={"windows of 2 rows": lambda found: found.value("invariant", rows=2)},
        ),
    ),
)
