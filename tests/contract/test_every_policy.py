"""What every policy owes, held by being registered: results, order, nothing lost or doubled, turns."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from support.policy_checks import RUNNERS, Choices, conserved, turns
from support.strategies import (
    FEW,
    POLICIES,
    QueueHistory,
    expect_results,
    has_split_tuples,
    is_suitable,
    list_queue,
    make_path_plan,
    plan_tables,
    policy,
)

import dsms
from dsms.engine.engine import Engine
from dsms.engine.ledger import NO_HEAD
from dsms.engine.observers import Observer
from dsms.engine.policy import limits_turns
from dsms.engine.runners import BatchRunner
from dsms.plan.segment import Segment


def held_to(table: dict[str, Any], runner: Any = None) -> Iterator[tuple[dsms.Plan, str]]:
    """The plan for every policy there is: a plan costs more to draw than to run, so one serves all."""
    plan = dsms.plan_from(table)
    for text in POLICIES:
        if is_suitable(text, plan, runner):
            note(f"policy {text}")
            yield plan, text


def run(plan: dsms.Plan, text: str, runner: Any = None) -> tuple[Engine, QueueHistory]:
    history = QueueHistory()
    engine = Engine(plan, policy(text), runner=runner, observers=[history])
    engine.run()
    return engine, history


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_results_are_the_same_under_every_policy(runner: str, table: dict[str, Any]) -> None:
    wanted = expect_results(dsms.plan_from(table))
    for plan, text in held_to(table, RUNNERS[runner]):
        engine, history = run(plan, text, RUNNERS[runner])
        amounts = dict.fromkeys(wanted.amounts, 0.0)
        for query, record in history.results:
            amounts[query] += record.amount
        assert amounts == pytest.approx(wanted.amounts)
        if not has_split_tuples(plan):
            assert Counter((query, record.arrived) for query, record in history.results) == wanted.results
        assert {s.name: history.consumed(s) for s in plan.stations} == pytest.approx(wanted.consumed)
        assert {s.name: history.produced(s) for s in plan.stations} == pytest.approx(wanted.produced)
        assert engine.ledger.held == pytest.approx(0)
        assert all(queue.oldest == NO_HEAD and not list_queue(engine.runner, queue) for queue in engine.ledger.queues)


@FEW
@given(table=plan_tables())
def test_results_do_not_depend_on_buffers_or_on_how_much_a_turn_takes(table: dict[str, Any]) -> None:
    seen = []
    changes = ({"buffers": "shared"}, {"buffers": "private"}, {"slice": 0.75}, {"in_service": False}, {"bounds": False})
    for change in changes:
        for plan, text in held_to(table | {"run": table["run"] | change}):
            seen.append(Counter((query, record.arrived) for query, record in run(plan, text)[1].results))
    assert has_split_tuples(plan) or all(one == seen[0] for one in seen)


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_after_every_turn_the_ledger_says_what_the_runner_holds(runner: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table, RUNNERS[runner]):
        history = QueueHistory()
        engine = Engine(plan, policy(text), runner=RUNNERS[runner], observers=[history])
        conserved(engine, history)
        while engine.step():
            conserved(engine, history)


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_arrival_order_is_kept_in_every_queue(runner: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table, RUNNERS[runner]):
        _, history = run(plan, text, RUNNERS[runner])
        for readings in history.reads.values():
            taken = [reading.record.seq for reading in readings]
            assert taken == sorted(taken)


@FEW
@given(table=plan_tables())
def test_a_join_or_union_takes_its_inputs_in_the_order_of_arrival(table: dict[str, Any]) -> None:
    for plan, text in held_to(table):
        _, history = run(plan, text)
        for station in plan.stations:
            readings = [
                (reading.begin, reading.record.seq, port)
                for port in range(len(station.inputs))
                for reading in history.reads.get((station.index, port), [])
            ]
            in_time = [(seq, port) for _, seq, port in sorted(readings)]
            assert in_time == sorted(in_time)


@FEW
@given(table=plan_tables())
def test_the_same_seed_makes_the_same_turns(table: dict[str, Any]) -> None:
    for plan, text in held_to(table):
        first = turns(plan, text)
        assert first == turns(plan, text)  # a plan can be run again
        assert first == turns(dsms.plan_from(table), text)


@FEW
@given(table=plan_tables())
def test_all_runners_take_the_same_turns_and_measure_the_same(table: dict[str, Any]) -> None:
    for plan, text in held_to(table, BatchRunner):
        assert turns(plan, text) == turns(plan, text, BatchRunner)
        assert dsms.simulate(plan, text, sample=1.0) == dsms.simulate(plan, text, sample=1.0, runner=BatchRunner)


def test_a_piece_of_more_than_a_tuple_leaves_a_share_of_less_than_one() -> None:
    """a makes pieces of 1.5; the second of b's two tuples finds half a tuple left of its share, and is taken whole."""
    plan = make_path_plan({"cost": 1, "selectivity": 1.5}, {"cost": 2}, at=[0, 0], tuples="fractional")
    assert turns(plan, "rr:tuples=2") == turns(plan, "rr:tuples=2", BatchRunner)
    lines = [json.loads(line) for line in turns(plan, "rr:tuples=2").splitlines()]
    assert [(line["stations"], line["consumed"]) for line in lines] == [(["a"], 2.0), (["b"], 3.0)]


def test_a_stream_with_costs_for_one_operator_does_not_hide_those_of_another_stream() -> None:
    """u costs 1: three times that for s's tuple, which says so for u; five times for t's, which says so for all."""
    table = {
        "streams": {
            "s": {"arrivals": {"kind": "list", "at": [0], "cost": {"u": [3.0]}}},
            "t": {"arrivals": {"kind": "list", "at": [0], "cost": [5.0]}},
        },
        "queries": {"q": {"operators": [{"name": "u", "cost": 1, "inputs": ["s", "t"]}]}},
    }
    for runner in RUNNERS.values():
        assert dsms.simulate(dsms.plan_from(table), "fifo", runner=runner).elapsed == 8


@pytest.mark.parametrize("runner", RUNNERS)
@FEW
@given(table=plan_tables())
def test_the_choice_is_the_best_of_all_segments_with_work(runner: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table, RUNNERS[runner]):
        Engine(plan, policy(text), runner=RUNNERS[runner], observers=[Choices()]).run()


@pytest.mark.parametrize("statistics", ["average", "window"])
@FEW
@given(table=plan_tables())
def test_the_choice_is_the_best_while_statistics_change(statistics: str, table: dict[str, Any]) -> None:
    for plan, text in held_to(table | {"run": table["run"] | {"statistics": statistics, "window": 3.0}}):
        Engine(plan, policy(text), observers=[Choices()]).run()


@FEW
@given(table=plan_tables())
def test_round_robin_leaves_nobody_out_for_more_than_a_round(table: dict[str, Any]) -> None:
    for plan, text in held_to(table):
        if text.startswith("rr"):
            choices = Choices()
            Engine(plan, policy(text), observers=[choices]).run()
            ring = len(plan.queries) if text.startswith("rr-query") else len(plan.stations)
            assert choices.longest <= ring - 1


@FEW
@given(table=plan_tables(), longest=st.sampled_from([None, 0.5, 2.0]))
def test_a_turn_takes_no_more_than_its_share(table: dict[str, Any], longest: float | None) -> None:
    run = {key: value for key, value in table["run"].items() if key != "slice"}
    for plan, text in held_to(table | {"run": run | ({"slice": longest} if longest else {})}):
        Engine(plan, policy(text), observers=[Shares()]).run()


class Shares(Observer):
    """Holds every turn to the tuples and, from the second step on, to the time it may take."""

    trusted = True

    def attach(self, engine: Engine) -> None:
        self.engine = engine

    def begin(self, now: float) -> None:
        policy = self.engine.control.policy
        self.asked = {
            segment.serial: policy.share(segment) if limits_turns(policy) else None
            for queue in self.engine.ledger.queues
            if queue.oldest != NO_HEAD
            for segment in queue.segments
        }

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        settings, asked = self.engine.plan.settings, self.asked[segment.serial]
        inside = {consumer.index for station in segment.stations for consumer in station.consumers}
        begun = [step for step in steps if step.queue.station.index not in inside]
        take = segment.stations[0].operator.take
        most: float = (take if take and not settings.fractional else 1) if settings.slice is None else math.inf
        if asked is not None:
            most = asked.tuples
        assert len(begun) <= most
        time = min(math.inf if asked is None else asked.time, settings.slice or math.inf)
        at, started = 0.0, set[str]()
        for place, step in enumerate(steps):  # a step begins only if, by what is known of its cost, it will be in time
            station = step.queue.station
            startup = 0.0 if station.name in started else station.operator.startup
            assert place == 0 or at + startup + station.operator.cost <= time * (1 + 1e-6)
            started.add(station.name)
            at += step.cost
