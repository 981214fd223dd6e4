"""Draws plans, arrivals and QoS weightings from a seed, to compare policies on; no policy was tuned on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import arrivals_from
from dsms.plan.graph import Plan
from dsms.query.plan_file import plan_from

Generator = np.random.Generator
FEW = 200  # results: a mean delay over fewer is more chance than policy
MILLISECOND = 0.001  # costs are 1 to 16 of these, so that a selector's 2 s are some hundred tuples


class Weights(NamedTuple):
    """A QoS: how much queued tuples, delay and output rate count."""

    memory: float
    delay: float
    rate: float

    def __str__(self) -> str:
        return " ".join(f"{name}{weight:.2g}" for name, weight in zip("MDR", self, strict=True) if weight)


WEIGHTINGS = (
    Weights(1, 0, 0),
    Weights(0, 1, 0),
    Weights(0, 0, 1),
    Weights(0.5, 0.5, 0),
    Weights(0.7, 0.3, 0),
    Weights(0.3, 0.7, 0),
    Weights(0.5, 0, 0.5),
    Weights(0, 0.5, 0.5),
    Weights(1 / 3, 1 / 3, 1 / 3),
)


@dataclass(frozen=True)
class PlanCase:
    """A plan with its arrivals: under every weighting it is another case."""

    name: str
    pattern: str
    queries: int
    table: dict[str, Any]  # as in a plan file

    def plan(self, startup: float = 0.0, span: float | None = None) -> Plan:
        """As the engine gets it; with a start-up cost, in mean operator costs, turns of at most `span` of these."""
        operators = [operator for query in self.table["queries"].values() for operator in query["operators"]]
        mean = sum(operator["cost"] for operator in operators) / len(operators)
        run = dict(self.table["run"], **({} if span is None else {"slice": span * mean}))
        queries = {
            name: dict(query, operators=[dict(operator, startup=startup * mean) for operator in query["operators"]])
            for name, query in self.table["queries"].items()
        }
        return plan_from(dict(self.table, queries=queries, run=run))


def make_cases(seed: int, plans: int, arrivals: int) -> Iterator[PlanCase]:
    """Yield cases whose patterns and numbers of queries take turns; all else is drawn."""
    for number in range(plans):
        rng = np.random.default_rng([seed, number])
        pattern = list(PATTERNS)[number % len(PATTERNS)]
        count = 1 + (number + number // len(PATTERNS)) % 4
        queries = {f"q{place}": _operators(rng) for place in range(count)}
        streams = count if rng.random() < 0.5 else 1  # one for each query, or one that all read
        load = rng.uniform(0.6, 0.95)
        work = sum(_cost(operators) for operators in queries.values()) / streams  # of a tuple, on the average
        results = sum(_passed(operators)[-1] for operators in queries.values()) / streams
        length = int(min(max(1, FEW / (results * arrivals)), 4) * arrivals)
        table = {
            "streams": {
                f"s{place}": {"arrivals": _arrivals(rng, pattern, length // streams, work * streams / load)}
                for place in range(streams)
            },
            "queries": {
                name: {"from": f"s{place % streams}", "operators": operators}
                for place, (name, operators) in enumerate(queries.items())
            },
            "run": {"seed": number, "buffers": "private"},
        }
        yield PlanCase(f"{number}: {count} x {pattern}, load {load:.2f}", pattern, count, table)


def _operators(rng: Generator) -> list[dict[str, Any]]:
    """Two to five of them: costs log-uniform 1:16, selectivities uniform from 0.1 to 1."""
    return [
        {"name": f"o{place}", "cost": MILLISECOND * 16 ** rng.random(), "selectivity": rng.uniform(0.1, 1)}
        for place in range(rng.integers(2, 6))
    ]


def _cost(operators: list[dict[str, Any]]) -> float:
    """What a tuple costs on its way through a query, on the average."""
    return sum(operator["cost"] * part for operator, part in zip(operators, _passed(operators), strict=False))


def _passed(operators: list[dict[str, Any]]) -> list[float]:
    """The part of all tuples that comes to each operator, and that leaves the last."""
    passed: list[float] = np.cumprod([1.0, *(operator["selectivity"] for operator in operators)]).tolist()
    return passed


def _arrivals(rng: Generator, pattern: str, count: int, period: float) -> dict[str, Any]:
    """Draw `count` instants, scaled to exactly this mean period under every pattern."""
    table = {"count": count, "seed": int(rng.integers(2**31)), **PATTERNS[pattern](period)}
    process = arrivals_from(table, seed=0)
    instants: NDArray[np.float64] = process.between(0.0, process.end)
    return {"kind": "list", "at": instants * (period * count / instants[-1])}


PATTERNS: dict[str, Callable[[float], dict[str, Any]]] = {
    "poisson": lambda period: {"kind": "poisson", "rate": 1 / period},
    "groups": lambda period: {"kind": "bursts", "rate": 1 / period, "group": 10},
    # Flows of 15 tuples or so that come three times as fast as the mean; how long they last has no variance.
    "pareto": lambda period: {
        "kind": "pareto",
        "flows": 1 / (15 * period),
        "packets": 3 / period,
        "shortest": 5 / 3 * period,
    },
    # Every fifth interval has ten times the rate of the others; an interval has 20 tuples, or 200.
    "piecewise": lambda period: {
        "kind": "piecewise",
        "rates": [rate / (2.8 * period) for rate in (1, 1, 1, 10, 1)],
        "every": 56 * period,
    },
}
