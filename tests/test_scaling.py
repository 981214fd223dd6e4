"""What must not grow with the plan: the time of a turn, and of reading and setting up an operator."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.legs import Legs
from benchmarks.timing import interleaved
from benchmarks.workload import Workload

from dsms.engine import Engine
from dsms.measures import Memory, Results, Turns
from dsms.planfile import plan_from
from dsms.policies.registry import policy_named

ATTEMPTS = 4  # a machine busy with something else is given some time: only what is slow each time fails
FEW = Workload(streams=1, queries=10, operators=1, turns=22_000, load=2.0)
MANY = Workload(streams=100, queries=100, operators=1, turns=22_000, load=2.0)


def least(ratio: Callable[[], float], enough: float) -> float:
    """The least of some measurements of a ratio; as soon as one is low enough, it is taken."""
    measured = []
    while len(measured) < ATTEMPTS and min(measured, default=enough + 1) > enough:
        measured.append(ratio())
    return min(measured)


@pytest.mark.parametrize("policy", ["fifo", "greedy", "mtiq", "rr"])
def test_a_turn_with_10000_segments_takes_at_most_three_times_one_with_10(policy: str) -> None:
    def ratio() -> float:
        few, many = Legs(FEW.plan, policy, 4096), Legs(MANY.plan, policy, 4096)
        times = interleaved({"few": few, "many": many}, repetitions=5)
        assert few.finish() == FEW.work
        assert many.finish() == MANY.work
        return min(times["many"].each) / min(times["few"].each)

    assert least(ratio, enough=3) <= 3


def many_queries(operators: int) -> dict[str, Any]:
    """Queries of up to five operators, named alike in each, over one stream."""
    names = [f"o{place}" for place in range(min(5, operators))]
    return table(1, {f"q{place}": ("s0", names) for place in range(operators // len(names))})


def one_query(operators: int) -> dict[str, Any]:
    """One path as long as can be."""
    return table(1, {"q": ("s0", [f"o{place}" for place in range(operators)])})


def many_streams(operators: int) -> dict[str, Any]:
    """A query of one operator over each stream."""
    return table(operators, {f"q{place}": (f"s{place}", ["o"]) for place in range(operators)})


def table(streams: int, queries: dict[str, tuple[str, list[str]]]) -> dict[str, Any]:
    return {
        "streams": {f"s{place}": {"arrivals": {"kind": "list", "at": [0.0, 1.0]}} for place in range(streams)},
        "queries": {
            query: {"from": stream, "operators": [{"name": name, "cost": 0.001} for name in names]}
            for query, (stream, names) in queries.items()
        },
    }


@pytest.mark.parametrize("shape", [many_queries, one_query, many_streams])
def test_reading_and_setting_up_an_operator_takes_no_longer_in_a_large_plan(
    shape: Callable[[int], dict[str, Any]],
) -> None:
    """Each plan is run as well, so that what is set up works: both tuples take a turn at every operator."""

    def set_up_and_run(operators: int) -> float:
        given, turns, policy = shape(operators), Turns(), policy_named("fifo")
        gc.collect()  # what earlier runs left is not ours to clear away
        start = time.process_time()
        plan = plan_from(given)
        engine = Engine(plan, policy, observers=[Memory(), turns, Results(plan)])
        seconds = time.process_time() - start
        engine.run()
        engine.finish(engine.clock.now())
        assert turns.count == 2 * operators
        return seconds / operators

    set_up_and_run(1)
    set_up_and_run(10)
    for operators in (1_000, 10_000):  # the smaller one tells a quadratic as well, and at once
        assert least(lambda n=operators: set_up_and_run(n) / min(set_up_and_run(100) for _ in range(5)), enough=4) <= 4
