"""Makes plans of any shape, and counts the work of a run from arrivals and outcomes alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import arrivals_from
from dsms.data.outcomes import draw_outputs, hash_name, tuple_identities
from dsms.plan.graph import Plan
from dsms.query.plan_file import plan_from

COST, SELECTIVITY, SEED = 0.001, 0.9, 1


class ExpectedWork(NamedTuple):
    """The counts of a run, equal under every policy."""

    admitted: int
    turns: int
    results: int


@dataclass(frozen=True)
class BenchmarkWorkload:
    """Equal queries, each a path of equal operators, over Poisson streams."""

    streams: int
    queries: int  # over each stream
    operators: int  # in each query
    turns: int  # about, in all
    load: float = 0.9  # of one CPU while tuples arrive

    @cached_property
    def plan(self) -> Plan:
        """The plan, for the engine."""
        steps = [{"name": f"o{i}", "cost": COST, "selectivity": SELECTIVITY} for i in range(self.operators)]
        queries = {query: {"from": f"s{place}", "operators": steps} for place, query in self._queries}
        return plan_from({
            "streams": {f"s{place}": {"arrivals": self._arrivals(place)} for place in range(self.streams)},
            "queries": queries,
            "run": {"seed": SEED},
        })  # fmt: skip

    @cached_property
    def instants(self) -> list[NDArray[np.float64]]:
        """The arrival times of tuples, by stream."""
        processes = [arrivals_from(self._arrivals(place), seed=0) for place in range(self.streams)]
        return [process.between(0.0, process.end) for process in processes]

    @cached_property
    def passes(self) -> list[NDArray[np.bool_]]:
        """By query: whether its operators (rows) pass its stream's tuples (columns)."""
        return [
            np.array([
                draw_outputs(self._identities(place), SELECTIVITY, hash_name(f"{query}.o{i}"), SEED)
                for i in range(self.operators)
            ]).astype(bool)
            for place, query in self._queries
        ]  # fmt: skip

    @cached_property
    def work(self) -> ExpectedWork:
        """Count turns and results: a tuple reaches an operator if all operators before it pass it."""
        passed = [np.logical_and.accumulate(query, axis=0) for query in self.passes]
        return ExpectedWork(
            sum(len(instants) for instants in self.instants),
            sum(query.shape[1] + int(query[:-1].sum()) for query in passed),
            sum(int(query[-1].sum()) for query in passed),
        )

    @property
    def _queries(self) -> list[tuple[int, str]]:
        return [(place, f"q{place}-{number}") for place in range(self.streams) for number in range(self.queries)]

    def _identities(self, place: int) -> NDArray[np.uint64]:
        return tuple_identities(f"s{place}", np.arange(len(self.instants[place])))

    def _arrivals(self, place: int) -> dict[str, object]:
        visits = self.queries * sum(SELECTIVITY**depth for depth in range(self.operators))  # of one tuple
        rate = self.load / (self.streams * visits * COST)
        until = self.turns / (self.streams * visits * rate)
        return {"kind": "poisson", "rate": rate, "until": until, "seed": place}
