"""How often the CPU turns from one operator to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dsms
from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.queries import table
from dsms.papers.chain.runs import BY_TUPLE, LABELS, POLICIES, Operators, policy_text, sweep
from dsms.papers.claim import Claim, Figure
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.measured import Measured

QUERIES = {
    "two": "two operators",
    "four": "four operators",
    "relation": "join with relation",
    "join": "window join",
    "several": "multiple queries",
}
EMPTIED = ":ratio=1.0"  # what there is in the queue is taken at once
TUPLES, QUICK = 40_000, 2_500
FEWER = (-float("inf"), 0.99)  # by a hundredth at least, on every query


def points(scale: Scale) -> list[Point]:
    return [
        each
        for seed in scale.numbers()
        for query in QUERIES
        for each in sweep(
            {"seed": seed, "query": query, "tuples": scale.of(TUPLES, QUICK), "data": SYNTHETIC},
            (*POLICIES, BY_TUPLE, *(name + EMPTIED for name in ("chain", "greedy", "fifo"))),
        )
    ]


def measure(point: Point) -> dict[str, Any]:
    """For each tuple that came: changes of the operator, and of what the policy schedules (a whole chain for Chain)."""
    operators = Operators()
    run = dsms.simulate(table(point), policy_text(point), observers=[operators])
    return {"operators": operators.switches / run.admitted, "units": run.switches / run.admitted}
