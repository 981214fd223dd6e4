"""The two plans of figure 6.1 and their streams, as each way to read the thesis has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsms.papers.raindrop.window_join import LENGTH
from dsms.plan import Plan
from dsms.planfile import plan_from

RATES = (20.0, 40.0, 60.0, 200.0)  # tuples a second, one of these by chance every five seconds
MEAN = sum(RATES) / len(RATES)
CHANCE = 0.05  # that two tuples in a window satisfy the join's predicate
PASSED = 0.5  # by the filters before the join
JOINED = LENGTH * MEAN * PASSED * CHANCE  # results for a tuple of either input, in the mean
# Time for a tuple, in units whose length follows from the load, and selectivity.
FILTERS = {"o1": (1.0, 0.9), "o2": (0.5, 0.3), "o3": (1.0, 0.8), "o4": (3.0, 1.0)}
JOIN = {"o1": (0.5, PASSED), "o2": (0.5, PASSED), "o3": (1.0, JOINED), "o4": (3.0, 1.0)}
INPUTS = {"o1": ["s"], "o2": ["r"], "o3": ["o1", "o2"], "o4": ["o3"]}

CHOSEN = (
    "The numbers of figure 6.1 are lost. Chosen: plan 1, four filters in a row of times 1, 0.5, 1, 3 and "
    "selectivities 0.9, 0.3, 0.8, 1; plan 2, a filter of time 0.5 and selectivity 0.5 on each of two streams, a join "
    "of their windows of 200 ms of time 1, whose predicate holds for 5 % of the pairs, and a filter of time 3 and "
    "selectivity 1. Each stream is Poisson with a mean of 20, 40, 60 or 200 tuples a second, drawn anew every 5 s; "
    "all need 0.9 of the CPU."
)


@dataclass(frozen=True)
class Reading:
    """One way to set up what the thesis leaves open."""

    load: float = 0.9  # of the CPU, in the mean
    rule: bool = True  # Raindrop's workload rule; False: one tuple a turn
    startup: float = 0.0  # how much of an operator's time for one tuple a run takes whatever it handles


READINGS = {
    "plain": Reading(),
    "one tuple a turn": Reading(rule=False),
    "start-up cost": Reading(startup=0.5),
    "overload": Reading(load=1.2),
}


def built(plan: int, reading: Reading, seed: int, tables: Mapping[str, Any]) -> Plan:
    """Plan 1 or plan 2."""
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
    """Units of time that a tuple of each stream comes to, one run for each tuple."""
    if plan == 2:
        return 2 * (JOIN["o1"][0] + PASSED * (JOIN["o3"][0] + JOINED * JOIN["o4"][0]))
    left, work = 1.0, 0.0
    for time, selectivity in FILTERS.values():
        work, left = work + left * time, left * selectivity
    return work
