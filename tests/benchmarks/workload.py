"""Plans of any shape from one recipe, and what a run of them must come to: counted from arrivals and fates alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import arrivals_from
from dsms.fates import identities, name_hash, random_outputs
from dsms.plan import Plan
from dsms.planfile import plan_from

COST, SELECTIVITY, SEED = 0.001, 0.9, 1


class Work(NamedTuple):
    """What the plan prescribes, whatever the policy."""

    admitted: int
    turns: int
    results: int


@dataclass(frozen=True)
class Workload:
    """Equal queries, each a path of equal operators, over Poisson streams."""

    streams: int
    queries: int  # over each stream
    operators: int  # in each query
    turns: int  # about so many in all
    load: float = 0.9  # of one CPU while tuples arrive

    @cached_property
    def plan(self) -> Plan:
        """As the engine gets it."""
        steps = [{"name": f"o{i}", "cost": COST, "selectivity": SELECTIVITY} for i in range(self.operators)]
        queries = {query: {"from": f"s{place}", "operators": steps} for place, query in self._queries}
        return plan_from({
            "streams": {f"s{place}": {"arrivals": self._arrivals(place)} for place in range(self.streams)},
            "queries": queries,
            "run": {"seed": SEED},
        })  # fmt: skip

    @cached_property
    def instants(self) -> list[NDArray[np.float64]]:
        """When tuples arrive, by stream."""
        processes = [arrivals_from(self._arrivals(place), seed=0) for place in range(self.streams)]
        return [process.between(0.0, process.end) for process in processes]

    @cached_property
    def passes(self) -> list[NDArray[np.bool_]]:
        """By query: whether its operators (down) would let its stream's tuples (across) pass."""
        return [
            np.array([
                random_outputs(identities(f"s{place}", self._numbers(place)), SELECTIVITY, name_hash(f"{q}.o{i}"), SEED)
                for i in range(self.operators)
            ]).astype(bool)
            for place, q in self._queries
        ]  # fmt: skip

    @cached_property
    def work(self) -> Work:
        """A tuple takes a turn at an operator if all before let it pass, and is a result if the last one does too."""
        passed = [np.logical_and.accumulate(query, axis=0) for query in self.passes]
        return Work(
            sum(len(instants) for instants in self.instants),
            sum(query.shape[1] + int(query[:-1].sum()) for query in passed),
            sum(int(query[-1].sum()) for query in passed),
        )

    @property
    def _queries(self) -> list[tuple[int, str]]:
        return [(place, f"q{place}-{number}") for place in range(self.streams) for number in range(self.queries)]

    def _numbers(self, place: int) -> NDArray[np.int64]:
        return np.arange(len(self.instants[place]))

    def _arrivals(self, place: int) -> dict[str, object]:
        visits = self.queries * sum(SELECTIVITY**depth for depth in range(self.operators))  # of one tuple
        rate = self.load / (self.streams * visits * COST)
        until = self.turns / (self.streams * visits * rate)
        return {"kind": "poisson", "rate": rate, "until": until, "seed": place}
