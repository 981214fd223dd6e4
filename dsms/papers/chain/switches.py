"""How often the CPU turns from one operator to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dsms
from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.queries import table
from dsms.papers.chain.runs import BY_TUPLE, LABELS, POLICIES, Operators, policy_text, sweep
from dsms.papers.claim import Claim, Figure, at_most
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
FEWER = at_most(1 - 1e-9)
AT_LEAST_NOT_MORE = at_most(1)


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


def ratio(figure: str, other: str, chain: str = "chain", of: Callable[[Sequence[float]], float] = max) -> Figure:
    """Chain's switches by another policy's: on the query where Chain does worst, unless told otherwise."""

    def found(measured: Measured) -> float:
        each = [measured.where(query=query) for query in QUERIES]
        return of([one.value(figure, policy=chain) / one.value(figure, policy=other) for one in each])

    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _lines(figure: str) -> Callable[[Measured], list[Line]]:
    def lines(measured: Measured) -> list[Line]:
        return [
            Line(label, range(len(QUERIES)), [measured.value(figure, policy=policy, query=query) for query in QUERIES])
            for policy, label in LABELS.items()
        ]

    return lines


def _plot(figure: str, title: str) -> Plot:
    return Plot(
        f"switches-of-{figure}", title, "query", "switches a tuple", _lines(figure), bars=True,
        ticks=tuple("\n".join(name.rsplit(" ", 1)) for name in QUERIES.values()),
    )  # fmt: skip


READING = (
    "A switch is that something else is scheduled than before: a chain of Chain's is one thing, which Chain takes "
    "tuples through operator by operator. Turns are of one tuple. Chain's switches by the other's, of all queries "
    "where Chain does worst."
)


def _claim(other: str, because: str, others: Mapping[str, Figure] | None = None) -> Claim:
    readings: dict[str, Figure] = {
        "the mean over queries": ratio("units", other, of=_mean),
        "every change of operator, also within a chain": ratio("operators", other),
        **(others or {}),
    }
    if other != "rr":
        readings["a turn empties the queue"] = ratio("units", other + EMPTIED, "chain" + EMPTIED)
    return Claim(
        f"fewer-than-{other}",
        f"Chain makes fewer context switches than {LABELS[other]}.",
        "fewer; no data shown",
        ratio("units", other),
        FEWER,
        AT_LEAST_NOT_MORE,
        reading=READING,
        because=because,
        others=readings,
    )


SWITCHES = Experiment(
    name="context-switches",
    title="Context switches",
    setup="The queries of all experiments, on synthetic data: how often something else is scheduled than before, for "
    "each tuple that arrives. The paper claims it without data. Visits of Round-robin as in the other experiments.",
    points=points,
    measure=measure,
    plots=(
        _plot("operators", "Switches between operators"),
        _plot("units", "Switches between what policies schedule: chains, or operators"),
    ),
    claims=(
        _claim("fifo", "Within a chain Chain takes tuples from operator to operator just as FIFO on the whole path."),
        _claim(
            "rr",
            "The longer a visit of Round-robin, the fewer its switches, and the paper's quantum is lost.",
            {"visits of one tuple": ratio("units", BY_TUPLE)},
        ),
        _claim(
            "greedy",
            "Where every operator is a chain of its own, as with two operators, Greedy and Chain do the same. If "
            "changes of operator within a chain count, Greedy makes fewer: it lets tuples gather in front of "
            "unproductive operators, and runs these many times in a row.",
        ),
    ),
)
