"""The test-bed of Sharaf et al., section 6, as a plan: 250 queries of three operators over 10 streams.

A query's two predicates have the same selectivity and all its operators the same cost. Tuples of a bursty stream
arrive in groups of ten. Random draws depend on the seed alone, so that all policies, utilisations and readings get the
same queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.plan.graph import Plan
from dsms.query.plan_file import plan_from

STREAMS, QUERIES, GROUP = 10, 250, 10
TUPLES = 10_000  # per stream, in the paper
CLASSES = 3  # of costs K·2^i, with K = 1
STEPS = 10  # distinct selectivities from 0.1 to 1.0: Zipf's law needs ranks
USERS = 10  # most users that a query serves

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """The parameters of the test-bed; the defaults are our plain reading of the paper."""

    seed: int
    tuples: int = TUPLES
    utilisation: float = 0.95
    bursty: int = 5  # number of bursty streams
    zipf: float = 0.0  # Zipf exponent of the selectivities; 0: all equally likely
    equal: bool = False  # whether all operators cost the same
    steps: int = STEPS  # number of distinct selectivities; 0: continuous and uniform
    whole: bool = False  # whether the selectivity drawn is that of the whole query, not of each predicate
    apart: bool = False  # whether each stream brings an equal share of the load, instead of equally many tuples
    weighted: bool = False  # whether the number of a query's users is its weight
    run: dict[str, Any] = field(default_factory=dict)  # further settings for the plan's [run]


@dataclass(frozen=True)
class TestbedQueries:
    """The random draws for each query: the cost and selectivity of its operators, its stream, its number of users."""

    costs: Floats
    selectivities: Floats
    streams: NDArray[np.int64]
    users: Floats

    def work(self, stream: int | None = None) -> float:
        """The expected processing time of a tuple in all queries of a stream; without a stream, the sum over all."""
        by_query = self.costs * (1 + self.selectivities + self.selectivities**2)
        return float(np.sum(by_query if stream is None else by_query[self.streams == stream]))


def draw_queries(setting: Setting, streams: int = STREAMS) -> TestbedQueries:
    """Draw the queries of a seed."""
    rng = np.random.default_rng(setting.seed)
    classes = rng.integers(CLASSES, size=QUERIES)
    if setting.steps:
        weights = 1 / np.arange(1, setting.steps + 1) ** setting.zipf
        values = np.linspace(1.0, 0.1, setting.steps)  # the most likely first
        selectivities = rng.choice(values, size=QUERIES, p=weights / weights.sum())
    else:
        selectivities = rng.uniform(0.1, 1, size=QUERIES)
    return TestbedQueries(
        costs=np.where(setting.equal, 1.0, 2.0**classes),
        selectivities=np.sqrt(selectivities) if setting.whole else selectivities,
        streams=rng.integers(streams, size=QUERIES),
        users=rng.integers(1, USERS + 1, size=QUERIES).astype(float),
    )


def arrivals(setting: Setting, queries: TestbedQueries) -> list[dict[str, Any]]:
    """The arrival tables: bursty streams first, then Poisson streams, at rates that reach the utilisation."""
    kinds = [{"kind": "bursts", "group": GROUP}] * setting.bursty + [{"kind": "poisson"}] * STREAMS
    rate = setting.utilisation / queries.work()
    return [
        {**kind, "count": setting.tuples, "rate": _own_rate(setting, queries.work(place)) if setting.apart else rate}
        for place, kind in enumerate(kinds[:STREAMS])
    ]


def plan(setting: Setting, queries: TestbedQueries, streams: list[dict[str, Any]]) -> Plan:
    """The plan of the queries over streams with these arrivals."""
    columns = (queries.streams, queries.costs, queries.selectivities, queries.users)
    drawn = zip(*(column.tolist() for column in columns), strict=True)
    return plan_from({
        "streams": {f"s{place}": {"arrivals": table} for place, table in enumerate(streams)},
        "queries": {
            f"q{place}": {
                "from": f"s{stream}",
                "weight": users if setting.weighted else 1.0,
                "operators": [
                    {"name": "first", "cost": cost, "selectivity": selectivity},
                    {"name": "second", "cost": cost, "selectivity": selectivity},
                    {"name": "projection", "cost": cost},
                ],
            }
            for place, (stream, cost, selectivity, users) in enumerate(drawn)
        },
        "run": {"seed": setting.seed, "buffers": "private", **setting.run},
    })  # fmt: skip


def _own_rate(setting: Setting, work: float) -> float:
    """The rate at which one stream brings its equal share of the load."""
    return setting.utilisation / STREAMS / work
