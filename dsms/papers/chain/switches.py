"""Context switches: how often each policy switches between operators or chains, for each arriving tuple."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dsms
from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.queries import table
from dsms.papers.chain.runs import BY_TUPLE, LABELS, POLICIES, OperatorObserver, policy_text, sweep
from dsms.papers.claim import Claim, Figure, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.measurements import Measurements

QUERIES = {
    "two": "two operators",
    "four": "four operators",
    "relation": "join with relation",
    "join": "window join",
    "several": "multiple queries",
}
EMPTIED = ":ratio=1.0"  # policy parameter: a turn takes the whole queue
TUPLES, QUICK = 40_000, 2_500
FEWER = band_up_to(1 - 1e-9)
AT_LEAST_NOT_MORE = band_up_to(1)


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
    """Switches per arrived tuple: between operators, and between the policy's segments (for Chain whole chains)."""
    operators = OperatorObserver()
    run = dsms.simulate(table(point), policy_text(point), observers=[operators])
    return {"operators": operators.switches / run.admitted, "units": run.switches / run.admitted}


def ratio(figure: str, other: str, chain: str = "chain", of: Callable[[Sequence[float]], float] = max) -> Figure:
    """Chain's switches over another policy's; by default on the query where that is greatest."""

    def switches_ratio(measured: Measurements) -> float:
        by_query = [measured.where(query=query) for query in QUERIES]
        return of([runs.value(figure, policy=chain) / runs.value(figure, policy=other) for runs in by_query])

    return switches_ratio


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _lines(figure: str) -> Callable[[Measurements], list[PlotLine]]:
    def lines(measured: Measurements) -> list[PlotLine]:
        return [
            PlotLine(
                label, range(len(QUERIES)), [measured.value(figure, policy=policy, query=query) for query in QUERIES]
            )
            for policy, label in LABELS.items()
        ]

    return lines


def _plot(figure: str, title: str) -> Plot:
    return Plot(
        f"switches-of-{figure}", title, "query", "switches a tuple", _lines(figure), bars=True,
        ticks=tuple("\n".join(name.rsplit(" ", 1)) for name in QUERIES.values()),
    )  # fmt: skip


READING = (
    "A switch is a turn of another segment than before. A whole chain is one segment for Chain, which takes tuples "
    "through it operator by operator. A turn is one tuple. Ours: Chain's switches over the other policy's, on the "
    "query where that is greatest."
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
    setup="The queries of all experiments, on synthetic data: how often another segment runs than before, per "
    "arriving tuple. The paper shows no data for its claim. Visits of Round-robin as in the other experiments.",
    points=points,
    measure=measure,
    plots=(
        _plot("operators", "Switches between operators"),
        _plot("units", "Switches between the policies' segments: chains, or operators"),
    ),
    claims=(
        _claim("fifo", "Within a chain, Chain takes tuples from operator to operator just as FIFO on the whole path."),
        _claim(
            "rr",
            "The longer a visit of Round-robin, the fewer its switches, and the paper's quantum is lost.",
            {"visits of one tuple": ratio("units", BY_TUPLE)},
        ),
        _claim(
            "greedy",
            "Where every operator is a chain of its own, as with two operators, Greedy and Chain do the same. If "
            "switches of operator within a chain count, Greedy makes fewer: it lets tuples queue before "
            "unproductive operators, and then runs these many times in a row.",
        ),
    ),
)
