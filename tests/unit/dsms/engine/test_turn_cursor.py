"""Where turns end inside a segment, and where the next turn begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.strategies import make_path_plan

import dsms
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.runners import BatchRunner, Step
from dsms.engine.turn_limit import describe_turn, describe_turns
from dsms.plan.segment import Segment

SLOW = [{"cost": 15.0}, {"cost": 15.0}, {"cost": 15.0}]


class Turns(Observer):
    """Lists the operators of every turn and the sequence numbers that they took."""

    trusted = True

    def __init__(self) -> None:
        self.turns: list[str] = []

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        self.turns.append("".join(step.queue.station.name for step in steps))


def turns(plan: dsms.Plan, policy: str, runner: Any = None) -> list[str]:
    seen = Turns()
    Engine(plan, dsms.policy_named(policy), runner=runner, observers=[seen]).run()
    return seen.turns


@pytest.mark.parametrize("runner", [None, BatchRunner])
@pytest.mark.parametrize("policy", ["chain", "partition-latency", "fas-mcq", "rr-query"])
def test_a_turn_ends_before_the_step_that_would_pass_its_slice(policy: str, runner: Any) -> None:
    """Three operators of 15 and a slice of 20: two of them would take 30."""
    plan = make_path_plan(*SLOW, at=[0, 0], slice=20.0)
    assert turns(plan, policy, runner) == ["a", "b", "c"] * 2


def test_the_next_turn_begins_with_what_is_left_inside() -> None:
    """A slice of 25 has time for two of a tuple's three operators; then the third, but no other tuple's path of 30."""
    plan = make_path_plan(*[{"cost": 10.0}] * 3, at=[0, 0], slice=25.0)
    assert turns(plan, "rr-query") == ["ab", "c", "ab", "c"]


def test_a_tuple_begins_only_if_its_whole_path_fits() -> None:
    plan = make_path_plan({"cost": 10.0}, {"cost": 1.0}, {"cost": 10.0}, at=[0, 0, 0], slice=32.0)
    assert turns(plan, "rr-query") == ["abc", "abc", "abc"]
    assert turns(make_path_plan({"cost": 2.0}, {"cost": 3.0}, at=[0, 0, 0], slice=10.0), "rr-query") == ["abab", "ab"]


def test_of_equal_age_the_copy_furthest_downstream_goes_first() -> None:
    plan = make_path_plan({"cost": 10.0, "selectivity": 2.0}, {"cost": 10.0}, {"cost": 10.0}, at=[0], slice=20.0)
    assert turns(plan, "rr-query") == ["ab", "c", "bc"]


def test_without_a_slice_a_tuple_runs_through_the_whole_query() -> None:
    assert turns(make_path_plan(*SLOW, at=[0, 0]), "fas-mcq") == ["abc", "abc"]
    assert turns(make_path_plan(*SLOW, at=[0, 0]), "chain") == ["a", "b", "c"] * 2


@pytest.mark.parametrize(("policy", "run", "words"), [
    ("rr", {}, "one tuple in virtual time, at most 20 ms on the other clocks; `slice` in [run] sets one limit for all"),
    ("chain", {"slice": 0.5}, None),
    ("rr:tuples=30", {}, "at most 30 tuples, on every clock"),
    ("mtiq:ratio=0.3", {}, "at most a part of the queued tuples, on every clock"),
])  # fmt: skip
def test_the_limit_of_a_turn_in_words(policy: str, run: dict[str, float], words: str | None) -> None:
    plan = make_path_plan(*SLOW, at=[0], **run)
    if words is not None:
        assert describe_turns(dsms.policy_named(policy), plan.settings) == words


def test_the_limit_of_a_turn_on_one_clock() -> None:
    plan = make_path_plan(*SLOW, at=[0], slice=0.05)
    chain, visits = dsms.policy_named("chain"), dsms.policy_named("rr:tuples=1,time=0.01")
    assert describe_turn(chain, plan.settings, dsms.VirtualClock) == "at most 0.05 time units"
    assert describe_turn(chain, plan.settings, dsms.WallClock) == "at most 50 ms"
    assert describe_turn(visits, plan.settings, dsms.WallClock) == "at most 1 tuple and 10 ms"
    assert describe_turn(chain, make_path_plan(*SLOW, at=[0]).settings, dsms.VirtualClock) == (
        "one operator's work on one tuple"
    )
