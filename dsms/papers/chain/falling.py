"""Checks that Greedy equals Chain where operators' priorities fall along the path, and differs elsewhere."""

from __future__ import annotations

from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.plots import sizes
from dsms.papers.chain.queries import CHARTS
from dsms.papers.chain.runs import memory, sweep
from dsms.papers.claim import Claim, band_from, band_up_to
from dsms.papers.experiment import Experiment, Plot, Point, Scale
from dsms.papers.measurements import Measurements

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


def _largest_difference(measured: Measurements, query: str) -> float:
    """The largest difference of Greedy's and Chain's queue sizes at any sampled instant, in tuples."""
    case = measured.where(query=query)
    pairs = zip(case.series("held", policy="greedy"), case.series("held", policy="chain"), strict=True)
    return max(abs(greedy - chain) for greedy, chain in pairs)


AS_CHAIN = Experiment(
    name="greedy-as-chain",
    title="Where priorities fall along the path",
    setup=f"Queries in which each operator frees less memory per time unit than the one before: {CHARTS['two']}, "
    f"{CHARTS['falling']}, and both at once, each on a stream of its own. For comparison: the join with a relation, "
    f"where priorities do not fall. Synthetic data.",
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
            "Where selective operators are first, so that priorities fall along the path, Greedy and Chain are equal.",
            "the same",
            lambda measured: max(_largest_difference(measured, query) for query in FALLING),
            band_up_to(0),
            reading="Ours: the largest difference of queue sizes, at any of some 280 instants.",
        ),
        Claim(
            "and-not-elsewhere",
            "Where priorities do not fall, Greedy and Chain differ.",
            "not the same",
            lambda measured: _largest_difference(measured, "relation"),
            band_from(1),
            reading="Ours: the largest difference of queue sizes, on the join with a relation.",
        ),
    ),
)
