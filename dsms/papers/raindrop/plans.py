"""Builds the two plans of figure 6.1 and their streams, for each reading of the thesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsms.papers.raindrop.window_join import LENGTH_S
from dsms.plan.graph import Plan
from dsms.query.plan_file import plan_from

RATES = (20.0, 40.0, 60.0, 200.0)  # tuples per second; a random one of these every five seconds
MEAN = sum(RATES) / len(RATES)
CHANCE = 0.05  # probability that two tuples in a window satisfy the join's predicate
PASSED = 0.5  # selectivity of the filters before the join
JOINED = LENGTH_S * MEAN * PASSED * CHANCE  # mean number of results for a tuple of either input
# Processing time of a tuple (in units whose length follows from the load), and selectivity.
FILTERS = {"o1": (1.0, 0.9), "o2": (0.5, 0.3), "o3": (1.0, 0.8), "o4": (3.0, 1.0)}
JOIN = {"o1": (0.5, PASSED), "o2": (0.5, PASSED), "o3": (1.0, JOINED), "o4": (3.0, 1.0)}
INPUTS = {"o1": ["s"], "o2": ["r"], "o3": ["o1", "o2"], "o4": ["o3"]}

CHOSEN = (
    "The numbers of figure 6.1 are lost; these are chosen. Plan 1: four filters in a row with times 1, 0.5, 1, 3 and "
    "selectivities 0.9, 0.3, 0.8, 1. Plan 2: a filter of time 0.5 and selectivity 0.5 on each of two streams, a join "
    "of their windows of 200 ms (time 1, predicate true for 5 % of the pairs), and a filter of time 3 and "
    "selectivity 1. Each stream is Poisson with a rate of 20, 40, 60 or 200 tuples per second, redrawn every 5 s; "
    "together they need 0.9 of the CPU."
)


@dataclass(frozen=True)
class PlanReading:
    """One choice of the settings that the thesis leaves open."""

    load: float = 0.9  # mean share of the CPU
    rule: bool = True  # Raindrop's workload rule; False: one tuple a turn
    startup: float = 0.0  # share of an operator's time for one tuple that is a fixed cost of each run


READINGS = {
    "plain": PlanReading(),
    "one tuple a turn": PlanReading(rule=False),
    "start-up cost": PlanReading(startup=0.5),
    "overload": PlanReading(load=1.2),
}


def build_plan(plan: int, reading: PlanReading, seed: int, tables: Mapping[str, Any]) -> Plan:
    """Build plan 1 or plan 2."""
    operators = FILTERS if plan == 1 else JOIN
    unit = reading.load / (_work(plan) * MEAN)
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "cost": time * unit * (1 - reading.startup),
            "startup": time * unit * reading.startup,
            "selectivity": selectivity,
            **({"inputs": INPUTS[name]} if plan == 2 else {}),
        }
        for name, (time, selectivity) in operators.items()
    ]
    streams = ("s",) if plan == 1 else ("s", "r")
    arrivals = {"kind": "piecewise", "rates": list(RATES), "every": 5.0, "order": "random"}
    query = {"operators": rows} if plan == 2 else {"from": "s", "operators": rows}
    return plan_from({
        "streams": {name: {"arrivals": arrivals} for name in streams},
        "queries": {"q": query},
        "run": {"seed": seed},
        **tables,
    })  # fmt: skip


def _work(plan: int) -> float:
    """The expected work, in time units, for one tuple of each stream, with one run for each tuple."""
    if plan == 2:
        return 2 * (JOIN["o1"][0] + PASSED * (JOIN["o3"][0] + JOINED * JOIN["o4"][0]))
    left, work = 1.0, 0.0
    for time, selectivity in FILTERS.values():
        work, left = work + left * time, left * selectivity
    return work
