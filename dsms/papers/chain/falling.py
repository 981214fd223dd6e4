"""Where priorities fall along the path, and Greedy is Chain."""

from __future__ import annotations

from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.plots import sizes
from dsms.papers.chain.queries import CHARTS
from dsms.papers.chain.runs import memory, sweep
from dsms.papers.claim import Claim, at_least, at_most
from dsms.papers.experiment import Experiment, Plot, Point, Scale
from dsms.papers.measured import Measured

FALLING = ("two", "falling", "two falling")


def _points(scale: Scale) -> list[Point]:
    return [
        each
        for seed in scale.numbers()
        for query in (*FALLING, "relation")
        for each in sweep(
            {"seed": seed, "query": query, "tuples": scale.of(40_000, 4000), "data": SYNTHETIC}, ("greedy", "chain")
        )
    ]


def _differ(measured: Measured, query: str) -> float:
    """The largest difference at any instant looked at, in tuples."""
    case = measured.where(query=query)
    pairs = zip(case.series("held", policy="greedy"), case.series("held", policy="chain"), strict=True)
    return max(abs(greedy - chain) for greedy, chain in pairs)


AS_CHAIN = Experiment(
    name="greedy-as-chain",
    title="Where priorities fall along the path",
    setup=f"Queries in which each operator frees less memory a unit of time than the one before: {CHARTS['two']}, "
    f"{CHARTS['falling']}, and both at once, each on a stream of its own; for comparison the join with a relation, "
    f"where they do not fall. Synthetic data.",
    points=_points,
    measure=memory,
    plots=(
        Plot(
            "greedy-as-chain", "Priorities that fall", "time", "queue size (tuples)", sizes(SYNTHETIC, query="falling")
        ),
    ),
    claims=(
        Claim(
            "greedy-is-chain",
            "Where selective operators come first, so that priorities fall along the path, Greedy is Chain.",
            "the same",
            lambda measured: max(_differ(measured, query) for query in FALLING),
            at_most(0),
            reading="The largest difference in tuples held, at any of some 280 instants.",
        ),
        Claim(
            "and-not-elsewhere",
            "Where they do not fall, Greedy is not Chain.",
            "not the same",
            lambda measured: _differ(measured, "relation"),
            at_least(1),
            reading="The largest difference in tuples held, on the join with a relation.",
        ),
    ),
)
