"""Dead time in virtual time: each turn takes `turn_cost` besides its work, each change of host `hop_cost`."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsms
from dsms import Engine, PacedClock, plan_from, policy_named
from dsms.errors import PlanError

POLICIES = ("fifo", "rr-query", "greedy", "mtiq", "chain", "fas-mcq")
COSTS = st.sampled_from([0.0, 0.001, 0.25, 3.0])


def table(at=(0.0,) * 12, selectivity=0.5, actors=24, **run):
    """A path of three operators, and a query of one, on the same stream."""
    operators = [{"name": "a", "cost": 1.0, "selectivity": selectivity}, {"name": "b", "cost": 2.0}]
    return {
        "streams": {"s": {"arrivals": {"kind": "list", "at": list(at)}}},
        "queries": {
            "path": {"from": "s", "operators": [*operators, {"name": "c", "cost": 0.5}]},
            "one": {"from": "s", "operators": [{"name": "d", "cost": 1.5}]},
        },
        "run": {"selectivity": "spread", **run},
        "live": {"actors": actors},
    }


@given(st.sampled_from(POLICIES), COSTS, st.sampled_from([None, 4.0]))
def test_a_batch_takes_longer_by_exactly_its_turns_times_their_cost(policy, cost, longest):
    settings = {} if longest is None else {"slice": longest}
    without = dsms.simulate(table(**settings), policy)
    run = dsms.simulate(table(**settings), policy, turn_cost=cost)
    assert (run.turns, run.outputs) == (without.turns, without.outputs)
    assert run.elapsed == pytest.approx(without.elapsed + cost * run.turns)


@given(st.sampled_from(POLICIES), COSTS, st.sampled_from([1, 2, 24]))
def test_a_batch_takes_longer_by_exactly_its_changes_of_host_times_their_cost(policy, cost, actors):
    hosts = {1: "0000", 2: "0011", 24: "0123"}[actors]
    places = dict(zip(("a", "b", "c", "d"), hosts, strict=True))
    changes = []

    class Hops(dsms.Observer):
        def turn(self, start, segment, steps):
            names = [places[step.queue.station.name] for step in steps]
            changes.append(sum(one != other for one, other in pairwise(names)))

    without = dsms.simulate(table(actors=actors), policy)
    run = dsms.simulate(table(actors=actors), policy, hop_cost=cost, observers=[Hops()])
    assert run.elapsed == pytest.approx(without.elapsed + cost * sum(changes))
    if policy == "rr-query" and actors > 1:
        assert sum(changes) > 0


def test_time_without_work_is_not_dead_time():
    """Two tuples so far apart that each finds the system idle: each waits for its own turns only."""
    without = dsms.simulate(table(at=[0.0, 100.0], selectivity=1.0), "rr-query")
    run = dsms.simulate(table(at=[0.0, 100.0], selectivity=1.0), "rr-query", turn_cost=2.0)
    assert (without.turns, run.turns) == (4, 4)
    assert run.elapsed == without.elapsed + 2 * 2.0


def test_arrivals_during_dead_time_come_at_their_own_instants(tmp_path):
    trace = tmp_path / "turns.jsonl"
    run = dsms.simulate(table(at=[0.0, 0.3], selectivity=0.0), "fifo", turn_cost=0.5, sample=0.25, trace=trace)
    turns = [json.loads(line) for line in trace.read_text().splitlines()]
    assert turns[0]["t"] == 0.5
    assert dict(run.memory.samples)[0.25] == 1
    assert dict(run.memory.samples)[0.5] == 2


@pytest.mark.parametrize("cost", [{"turn_cost": 0.5}, {"hop_cost": 0.5}])
def test_a_cut_within_dead_time_ends_the_run_there(cost):
    run = dsms.simulate(table(), "rr-query", until=3.25, cut=True, **cost)
    assert run.elapsed == 3.25
    whole = dsms.simulate(table(), "rr-query", **cost)
    assert run.outputs < whole.outputs


def test_the_plan_file_says_it_in_its_unit_or_as_a_duration():
    run = dsms.simulate(table(turn_cost="500ms"), "fifo")
    assert run == dsms.simulate(table(turn_cost=0.5), "fifo") == dsms.simulate(table(), "fifo", turn_cost=0.5)
    assert dsms.simulate(table(turn_cost=0.5), "fifo", turn_cost=0.0) == dsms.simulate(table(), "fifo")


@pytest.mark.parametrize("wrong", [-1.0, "5", "fast", True])
def test_a_cost_that_is_no_length_of_time_is_refused(wrong):
    with pytest.raises(PlanError, match=r"run.hop_cost: .* is not a number from 0 or a duration, as in '200us'"):
        plan_from(table(hop_cost=wrong))


def test_on_a_real_clock_turns_take_what_they_take():
    """Dead time of an hour is not waited for."""
    plan = plan_from({**table(turn_cost=3600.0, hop_cost=3600.0), "streams": {"s": {}}})
    engine = Engine(plan, policy_named("rr-query"), clock=PacedClock(budget=1000.0))
    engine.push("s", 2)
    engine.run()
    assert engine.clock.now() < 600
