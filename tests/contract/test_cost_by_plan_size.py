"""The time of a turn, and of reading and setting up an operator, does not grow with the plan."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.simulation.workload import BenchmarkWorkload

from dsms.engine.engine import Engine
from dsms.measure.run_measures import MemoryMeasure, ResultMeasure, TurnMeasure
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from

ATTEMPTS = 4  # a machine busy with something else is given some time: only what is slow each time fails
FEW = BenchmarkWorkload(streams=1, queries=10, operators=1, turns=22_000, load=2.0)
MANY = BenchmarkWorkload(streams=100, queries=100, operators=1, turns=22_000, load=2.0)
HUNDRED = BenchmarkWorkload(streams=100, queries=1, operators=3, turns=11_000, load=2.0)
TEN_THOUSAND = BenchmarkWorkload(
    streams=10_000, queries=1, operators=3, turns=11_000, load=2.0
)  # all drawn before it begins


def least(ratio: Callable[[], float], enough: float) -> float:
    """The least of some measurements of a ratio; as soon as one is low enough, it is taken."""
    measured = []
    while len(measured) < ATTEMPTS and min(measured, default=enough + 1) > enough:
        measured.append(ratio())
    return min(measured)


def bytecodes_a_turn(workload: BenchmarkWorkload, policy: str) -> float:
    """What a turn takes of the interpreter, arrivals included: the same on a busy machine as on a quiet one."""
    engine, executed, turns = Engine(workload.plan, policy_named(policy)), 0, 500
    while len(engine.journal.segments) < 100:
        engine.step()

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal executed
        frame.f_trace_opcodes = True
        executed += event == "opcode"
        return count

    before = len(engine.journal.segments)
    sys.settrace(count)
    while len(engine.journal.segments) < before + turns:
        engine.step()
    sys.settrace(None)
    return executed / turns


@pytest.mark.parametrize("policy", ["fifo", "greedy", "mtiq", "rr"])
def test_a_turn_with_10000_segments_takes_at_most_three_times_one_with_10(policy: str) -> None:
    """In bytecodes; what `make bench` measures in time, caches and all."""
    assert bytecodes_a_turn(MANY, policy) <= 3 * bytecodes_a_turn(FEW, policy)


def test_a_turn_with_10000_queries_takes_at_most_three_times_one_with_100() -> None:
    """Every arrival changes the backlog of one query, and with it that query's priority alone."""
    assert bytecodes_a_turn(TEN_THOUSAND, "fas-mcq") <= 3 * bytecodes_a_turn(HUNDRED, "fas-mcq")


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
        given, turns, policy = shape(operators), TurnMeasure(), policy_named("fifo")
        gc.collect()
        gc.disable()  # it would look through all that the tests before have left
        try:
            start = time.process_time()
            plan = plan_from(given)
            engine = Engine(plan, policy, observers=[MemoryMeasure(), turns, ResultMeasure(plan)])
            seconds = time.process_time() - start
        finally:
            gc.enable()
        engine.run()
        engine.finish(engine.clock.now())
        assert turns.count == 2 * operators
        return seconds / operators

    set_up_and_run(1)
    set_up_and_run(10)
    set_up_and_run(100)
    # Ten times as many, each as long: a quadratic takes ten times as long.
    assert least(lambda: set_up_and_run(5_000) / min(set_up_and_run(500) for _ in range(3)), enough=5) <= 5
