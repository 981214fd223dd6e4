"""Hosts go on to the next segment by themselves only where the scheduler would have no choice."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hooked_filter import HOOKS, HookedFilter
from support.live.domains import fleet_of

from actors.hosts.host_pool import HostPool
from actors.hosts.runner import ActorRunner
from dsms import Batch, Engine, WallClock, plan_from, policy_named
from dsms.engine.observers import Observer
from dsms.plan.segment import Segment

NAMES = {"a": ["a0", "a1", "a2", "a3"], "b": ["b0"]}
BRANCHES = {
    query: {"from": "s", "operators": [{"name": name, "function": HookedFilter(name)} for name in names]}
    for query, names in NAMES.items()
}
POLICIES = ("fifo", "chain", "greedy", "fas-mcq", "rr-query", "rr", "mtiq")


class TurnsByOperator(Observer):
    """Records the operators of each turn and the rows that they take."""

    def __init__(self) -> None:
        self.turns: list[tuple[str, ...]] = []
        self.rows: list[float] = []
        self.decisions = 0

    def begin(self, now: float) -> None:
        self.decisions += 1

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        self.turns.append(tuple(step.queue.station.name for step in steps))
        self.rows += [step.taken for step in steps]


class GrantCountingPool(HostPool):
    """Counts the grants that the scheduler sends."""

    grants = 0

    def run_turn(self, place: int, grant: Any) -> Any:
        self.grants += 1
        return super().run_turn(place, grant)


class Live:
    """A plan on hosts, with its results, turns and grants."""

    def __init__(self, queries: str, policy: str, hosts: int, sockets: bool, continues: bool = True) -> None:
        table = {
            "streams": {"s": {"schema": {"x": "int64"}}},
            "queries": {name: BRANCHES[name] for name in queries},
            "run": {"statistics": "average"},
        }
        fleet = fleet_of(hosts, None, sockets)
        fleet.__class__ = GrantCountingPool
        assert isinstance(fleet, GrantCountingPool)
        self.pool, self.log, self.results = fleet, TurnsByOperator(), list[tuple[str, list[int]]]()
        self.engine = Engine(
            plan_from(table),
            policy_named(policy),
            clock=WallClock(),
            runner=partial(ActorRunner, host_pool=self.pool),
            observers=[self.log],
            sink=lambda query, batch: self.results.append((query, batch.columns["x"].tolist())),
        )
        self.engine.runner.continues &= continues
        self.engine.row_runner.arm()

    def push(self, *rows: int) -> None:
        self.engine.push("s", Batch.of({"x": np.array(rows)}))

    def run(self) -> list[tuple[str, ...]]:
        """Run until nothing is left; return the turns since the last call."""
        before, self.pool.grants = len(self.log.turns), 0
        self.engine.run()
        assert self.engine.ledger.held == 0
        return self.log.turns[before:]


@pytest.fixture(autouse=True)
def _no_hooks() -> Any:
    HOOKS.clear()
    yield
    HOOKS.clear()


PATH = [("a0",), ("a1",), ("a2",), ("a3",)]


@pytest.mark.parametrize(("hosts", "sockets"), [(1, False), (4, False), (2, True), (4, True)])
def test_a_row_through_idle_operators_needs_one_grant(hosts: int, sockets: bool) -> None:
    live = Live("a", "fifo", hosts, sockets)
    live.push(1)
    assert live.run() == PATH
    assert live.pool.grants == 4  # each segment is granted by the scheduler once
    live.push(2, 3)
    assert live.run() == PATH
    assert live.pool.grants == 1
    assert live.log.decisions == 5
    assert live.results == [("a", [1]), ("a", [2, 3])]


def test_what_comes_meanwhile_calls_it_back() -> None:
    live = Live("a", "fifo", 4, True)
    live.push(1)
    live.run()
    HOOKS["a1"] = live.engine.row_runner.recall
    live.push(2)
    assert live.engine.step()
    assert live.log.turns[-2:] == [("a0",), ("a1",)]
    assert live.engine.ledger.held == 1
    live.engine.row_runner.arm()
    assert live.engine.step()
    assert live.log.turns[-2:] == [("a2",), ("a3",)]


def test_two_queues_with_tuples_are_a_choice() -> None:
    live = Live("ab", "fifo", 2, True)
    for row in range(3):
        live.push(row)
        live.run()
    live.push(9)
    turns = live.run()
    assert sorted(turns) == sorted([*PATH, ("b0",)])
    assert live.pool.grants > 1


@pytest.mark.parametrize("policy", ["rr:tuples=5", "rr-query:time=10"])
def test_a_policy_that_sets_shares_is_always_asked(policy: str) -> None:
    live = Live("a", policy, 2, True)
    for row in range(2):
        live.push(row)
        turns = live.run()
        assert live.pool.grants == len(turns)


def test_segments_of_an_earlier_policy_are_forgotten() -> None:
    live = Live("a", "fifo", 2, True)
    for row in range(2):
        live.push(row)
        live.run()
    live.engine.swap(policy_named("chain"))
    live.push(5)
    live.run()
    runner: Any = live.engine.runner
    assert len(runner._known) == 1  # of Chain: one segment, as all pass
    assert live.results[-1] == ("a", [5])


@given(
    st.sampled_from(POLICIES),
    st.sampled_from(["a", "ab"]),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 6)), min_size=1, max_size=8),
)
def test_results_turns_and_counts_are_those_without_it(
    policy: str, queries: str, pushes: list[tuple[int, int]]
) -> None:
    def outcome(continues: bool) -> Any:
        live = Live(queries, policy, 2, False, continues)
        number = 0
        for rows, steps in pushes:
            live.push(*range(number, number + rows))
            number += rows
            for _ in range(steps):
                live.engine.step()
        live.run()
        rows_of = {q: [x for name, xs in live.results if name == q for x in xs] for q in queries}
        return rows_of, dict(live.engine.runner.results), sum(live.log.rows)

    with_it, without = outcome(True), outcome(False)
    assert with_it[0] == without[0]
    assert with_it[1].keys() == without[1].keys()
    assert with_it[2] == without[2]
