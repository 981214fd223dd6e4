"""Another policy in the middle of a run: queues, state and results stay as they are."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.policy_checks import RUNNERS, Choices, conserved
from support.strategies import (
    DETERMINISTIC,
    POLICIES,
    QueueHistory,
    expect_results,
    has_split_tuples,
    is_suitable,
    make_path_plan,
    plan_tables,
    policy,
)

import dsms
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.plan.segment import Segment

swaps = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(POLICIES)), min_size=1, max_size=6)


class Diary(Observer):
    """The stations of every turn, in the order they ran, and every swap."""

    trusted = True

    def __init__(self) -> None:
        self.turns: list[list[str]] = []
        self.swaps: list[tuple[float, str, str]] = []

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        self.turns.append([step.queue.station.name for step in steps])

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        self.swaps.append((now, before.name, after.name))


@pytest.mark.parametrize("runner", RUNNERS)
@DETERMINISTIC
@given(table=plan_tables(), first=st.sampled_from(POLICIES), swaps=swaps)
def test_a_swap_at_any_moment_changes_no_result(
    runner: str, table: dict[str, Any], first: str, swaps: list[tuple[int, str]]
) -> None:
    plan, history = dsms.plan_from(table), QueueHistory()
    first = first if is_suitable(first, plan, RUNNERS[runner]) else "fifo"
    engine = Engine(plan, policy(first), runner=RUNNERS[runner], observers=[history, Choices()])
    for steps, text in swaps:
        for _ in range(steps):
            engine.step()
            conserved(engine, history)
        if is_suitable(text, plan, RUNNERS[runner]):
            engine.swap(policy(text))
        else:
            before = engine.control.policy
            with pytest.raises(dsms.PolicyError, match="is an oracle that reads the costs and outcomes"):
                engine.swap(policy(text))
            assert engine.control.policy is before
        conserved(engine, history)
    engine.run()
    conserved(engine, history)
    assert engine.ledger.held == pytest.approx(0)
    for readings in history.reads.values():
        taken = [reading.record.seq for reading in readings]
        assert taken == sorted(taken)
    wanted = expect_results(plan)
    assert {s.name: history.produced(s) for s in plan.stations} == pytest.approx(wanted.produced)
    if not has_split_tuples(plan):
        assert Counter((query, record.arrived) for query, record in history.results) == wanted.results


@DETERMINISTIC
@given(table=plan_tables(), text=st.sampled_from(POLICIES), steps=st.integers(0, 20))
def test_the_new_policy_decides_as_if_it_had_found_the_queues_so(table: dict[str, Any], text: str, steps: int) -> None:
    """Two engines brought to the same state, one by swaps that had no turn: they go on alike."""
    diaries = []
    assume(is_suitable(text, dsms.plan_from(table)))
    for between in ((), ("mtiq", "rr-query", "greedy")):
        diary = Diary()
        engine = Engine(dsms.plan_from(table), policy("fifo"), observers=[diary])
        for _ in range(steps):
            engine.step()
        for other in (*between, text):
            engine.swap(policy(other))
        engine.run()
        diaries.append(diary.turns)
    assert diaries[0] == diaries[1]


@pytest.mark.parametrize(
    ("after", "turns"),
    [
        ("rr-query", [["b"], ["b"], ["a", "b"]]),
        ("rr-query:tuples=2", [["b", "b"], ["a", "b"]]),
        ("fifo", [["b"], ["b"], ["a"], ["b"]]),
        ("mtiq", [["b"], ["b"], ["a"], ["b"]]),
    ],
)
def test_what_is_left_in_the_middle_of_a_segment_comes_first(after: str, turns: list[list[str]]) -> None:
    """MTIQ runs a twice and leaves two tuples before b; the third, before a, is younger."""
    diary = Diary()
    engine = Engine(make_path_plan({"cost": 1}, {"cost": 1}, at=[0, 0, 0]), policy("mtiq"), observers=[diary])
    engine.step()
    engine.step()
    assert [queue.count for queue in engine.ledger.queues] == [1, 2]
    engine.swap(policy(after))
    engine.run()
    assert diary.turns == [["a"], ["a"], *turns]
    assert diary.swaps == [(2.0, "mtiq", after.partition(":")[0])]


def test_a_fork_left_half_done_is_finished_first() -> None:
    """Round robin gave the first tuple to a and b; c has two of the fork's tuples left when queries take over."""
    table = {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 0]}}},
        "queries": {
            "q": {
                "from": "s",
                "operators": [
                    {"name": "a", "cost": 1},
                    {"name": "b", "cost": 1, "inputs": ["a"]},
                    {"name": "c", "cost": 1, "inputs": ["a"]},
                ],
            }
        },
    }
    diary = Diary()
    engine = Engine(dsms.plan_from(table), policy("rr"), observers=[diary])
    engine.step()
    engine.step()
    engine.swap(policy("rr-query"))
    engine.run()
    assert diary.turns == [["a"], ["b"], ["c"], ["a", "b", "c"]]


def test_what_was_measured_serves_the_next_policy_too() -> None:
    """The first tuple costs twice what was declared: 0.875·8 + 0.125·16 = 9, for a and for the query it is."""
    arrivals = {"kind": "list", "at": [0, 0], "cost": [2.0, 2.0]}
    plan = make_path_plan({"cost": 8}, at=[], stream={"arrivals": arrivals}, statistics="average")
    engine = Engine(plan, policy("fifo"))
    engine.step()
    engine.swap(policy("rr-query"))
    assert engine.ledger.queues[0].segments[0].mean_cost == 9


def test_what_is_no_policy_is_refused_and_the_run_goes_on() -> None:
    engine = Engine(make_path_plan({"cost": 1}, at=[0, 0]), policy("mtiq"))
    for wrong in ("chain", None):
        with pytest.raises(dsms.PolicyError, match="expected a Policy"):
            engine.swap(cast(Any, wrong))
    engine.run()
    assert engine.ledger.held == 0
