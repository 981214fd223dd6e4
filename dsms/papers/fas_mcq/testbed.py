"""The test-bed of Sharaf et al., section 6: 250 queries of three operators over 10 streams, as a plan.

A query's two predicates have one selectivity and all its operators one cost; tuples of a bursty stream come in groups
of ten. All that is drawn depends on the seed alone, so that policies, utilisations and readings meet the same queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.plan import Plan
from dsms.planfile import plan_from

STREAMS, QUERIES, GROUP = 10, 250, 10
TUPLES = 10_000  # a stream, in the paper
CLASSES = 3  # of costs: K·2^i, and K = 1
STEPS = 10  # of selectivities from 0.1 to 1.0: Zipf's law needs ranks
USERS = 10  # a weight is a number of users up to this many

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One way to set the test-bed up; what stands here is what we read in the paper."""

    seed: int
    tuples: int = TUPLES
    utilisation: float = 0.95
    bursty: int = 5  # streams
    zipf: float = 0.0  # 0: all selectivities are as likely
    equal: bool = False  # whether all operators cost the same
    steps: int = STEPS  # of selectivities; 0: a continuum, which can only be uniform
    whole: bool = False  # whether what is drawn is the selectivity of a query, rather than of each predicate
    apart: bool = False  # whether each stream brings an equal part of the load, rather than as many tuples
    weighted: bool = False  # whether a query's users are its weight
    run: dict[str, Any] = field(default_factory=dict)  # more of the plan's [run]


@dataclass(frozen=True)
class Queries:
    """What was drawn: the cost and selectivity of every query, its stream, and for how many users it runs."""

    costs: Floats
    chances: Floats
    streams: NDArray[np.int64]
    users: Floats

    def work(self, stream: int | None = None) -> float:
        """The time that a tuple is expected to take in all that read a stream; or the sum over streams."""
        each = self.costs * (1 + self.chances + self.chances**2)
        return float(np.sum(each if stream is None else each[self.streams == stream]))


def drawn(setting: Setting, streams: int = STREAMS) -> Queries:
    """The queries of a seed."""
    rng = np.random.default_rng(setting.seed)
    classes = rng.integers(CLASSES, size=QUERIES)
    if setting.steps:
        chance = 1 / np.arange(1, setting.steps + 1) ** setting.zipf
        values = np.linspace(1.0, 0.1, setting.steps)  # the likeliest first
        chances = rng.choice(values, size=QUERIES, p=chance / chance.sum())
    else:
        chances = rng.uniform(0.1, 1, size=QUERIES)
    return Queries(
        costs=np.where(setting.equal, 1.0, 2.0**classes),
        chances=np.sqrt(chances) if setting.whole else chances,
        streams=rng.integers(streams, size=QUERIES),
        users=rng.integers(1, USERS + 1, size=QUERIES).astype(float),
    )


def arrivals(setting: Setting, queries: Queries) -> list[dict[str, Any]]:
    """Poisson streams, the first of them in bursts, of a rate that brings the utilisation."""
    kinds = [{"kind": "bursts", "group": GROUP}] * setting.bursty + [{"kind": "poisson"}] * STREAMS
    rate = setting.utilisation / queries.work()
    return [
        {**kind, "count": setting.tuples, "rate": _alone(setting, queries.work(place)) if setting.apart else rate}
        for place, kind in enumerate(kinds[:STREAMS])
    ]


def plan(setting: Setting, queries: Queries, streams: list[dict[str, Any]]) -> Plan:
    """The queries over streams of these arrivals."""
    drawn_for = zip(
        queries.streams.tolist(), queries.costs.tolist(), queries.chances.tolist(), queries.users.tolist(), strict=True
    )
    return plan_from({
        "streams": {f"s{place}": {"arrivals": table} for place, table in enumerate(streams)},
        "queries": {
            f"q{place}": {
                "from": f"s{stream}",
                "weight": users if setting.weighted else 1.0,
                "operators": [
                    {"name": "first", "cost": cost, "selectivity": chance},
                    {"name": "second", "cost": cost, "selectivity": chance},
                    {"name": "projection", "cost": cost},
                ],
            }
            for place, (stream, cost, chance, users) in enumerate(drawn_for)
        },
        "run": {"seed": setting.seed, "buffers": "private", **setting.run},
    })  # fmt: skip


def _alone(setting: Setting, work: float) -> float:
    """The rate at which a stream brings its part of the load."""
    return setting.utilisation / STREAMS / work
