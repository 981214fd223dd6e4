"""Stretches of a run under one policy each: what they add up to, and where they are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import PLANS
from support.strategies import DETERMINISTIC, plan_tables

import dsms
from dsms.engine.engine import Engine
from dsms.live.monitor.monitor import Monitor
from dsms.measure.phases import MAX_PHASES
from dsms.measure.run_measures import MemoryMeasure, ResultMeasure, TurnMeasure
from dsms.plan.graph import Plan
from dsms.policies.adaptive.adaptive import Adaptive
from dsms.policies.registry import policy_named

SWAPS = ("chain", "fas-mcq", "fifo")


def path(at: list[float], cost: float = 2.0) -> Plan:
    return dsms.plan_from(
        {
            "streams": {"s": {"arrivals": {"kind": "list", "at": at}}},
            "queries": {"p": {"from": "s", "operators": [{"name": "a", "cost": cost}]}},
        }
    )


def test_a_swap_cuts_exactly():
    """Arrivals at 0, 1, 5; work 0–2, 2–4, 5–7. After two turns another policy decides, from 4 on."""
    plan = path([0, 1, 5])
    watch = Monitor(plan)
    engine = Engine(plan, policy_named("fifo"), observers=watch.observers)
    engine.step()
    engine.step()
    engine.swap(policy_named("chain"))
    watch.phases.set_reason("requested", 0.25)
    engine.run()
    first, second = watch.status(engine).phases
    assert (first.policy, first.since, first.until, first.turns) == ("fifo", 0, 4, 2)
    assert (first.memory_mean, first.memory_max) == ((1 + 2 + 2) / 4, 2)
    assert (first.results, first.latency_mean, first.staleness) == (2, 2.5, 1)
    assert (second.policy, second.since, second.until, second.turns) == ("chain", 4, None, 1)
    assert (second.reason, second.swap_seconds) == ("requested", 0.25)
    assert (second.memory_mean, second.memory_max) == (2 / 3, 1)
    assert (second.results, second.latency_mean) == (1, 2)
    assert second.staleness == pytest.approx(2 / 3)
    assert watch.status(engine).swaps == 1


def test_what_leaves_in_one_phase_may_have_made_the_one_before_stale():
    """Arrivals at 0 and 1; work 0–3, 3–6. The second leaves at 6, under the policy that decides from 3 on."""
    plan = path([0, 1], cost=3)
    watch = Monitor(plan)
    engine = Engine(plan, policy_named("fifo"), observers=watch.observers)
    engine.step()
    engine.swap(policy_named("chain"))
    engine.run()
    first, second = watch.status(engine).phases
    assert (first.until, first.staleness, second.staleness) == (3, 1, 1)
    assert (first.latency_mean, second.latency_mean) == (3, 5)


def test_a_selectors_choices_do_not_end_a_phase():
    plan = dsms.read_plan(PLANS / "bursts.toml")
    watch = Monitor(plan)
    adaptive = policy_named("adaptive:candidates=fifo+chain+rr,every=2,period=1")
    assert isinstance(adaptive, Adaptive)
    engine = Engine(plan, adaptive, observers=watch.observers)
    engine.run()
    (phase,) = watch.status(engine).phases
    chosen = [choice.chosen for choice in adaptive.choices]
    assert phase.policy == "adaptive:candidates=fifo+chain+rr,every=2,period=1"
    assert phase.choices == sum(a != b for a, b in pairwise(chosen)) > 0


def test_a_swap_to_who_is_in_charge_already_is_none():
    plan = path([0])
    watch = Monitor(plan)
    engine = Engine(plan, policy := policy_named("fifo"), observers=watch.observers)
    engine.swap(policy)
    assert watch.status(engine).swaps == 0


def test_the_last_phases_are_kept():
    plan = path([0])
    watch = Monitor(plan)
    engine = Engine(plan, policy_named("fifo"), observers=watch.observers)
    for _ in range(2 * MAX_PHASES):
        engine.swap(policy_named("fifo"))
    status = watch.status(engine)
    assert (status.swaps, len(status.phases)) == (2 * MAX_PHASES, MAX_PHASES)


def adds_up(plan: Plan, steps: int) -> None:
    """Swap the policy after this number of steps: the phases together equal the measures of the whole run."""
    watch, memory, turns, results = Monitor(plan), MemoryMeasure(), TurnMeasure(), ResultMeasure(plan)
    engine = Engine(plan, policy_named("fifo"), observers=[*watch.observers, memory, turns, results])
    for policy in SWAPS:
        for _ in range(steps):
            engine.step()
        engine.swap(policy_named(policy))
    engine.run()
    end = engine.clock.now()
    phases = watch.status(engine).phases
    assert [phase.policy for phase in phases] == ["fifo", *SWAPS]
    assert [phase.until for phase in phases[:-1]] == [phase.since for phase in phases[1:]]
    bounds = [*(phase.since for phase in phases), end]
    spans = [until - since for since, until in pairwise(bounds)]
    assert sum(phase.turns for phase in phases) == turns.count
    assert sum(phase.results for phase in phases) == results.count
    assert max(phase.memory_max or 0 for phase in phases) == pytest.approx(memory.max_tuples)
    held = sum((phase.memory_mean or 0) * span for phase, span in zip(phases, spans, strict=True))
    assert held == pytest.approx(memory.tuples_integral)
    late = sum((phase.latency_mean or 0) * phase.results for phase in phases)
    assert late == pytest.approx(sum(query.latency_sum for query in results.queries))
    if not plan.settings.fractional:
        stale = sum((phase.staleness or 0) * span for phase, span in zip(phases, spans, strict=True))
        whole = sum(query.staleness.total for query in results.queries) / len(plan.queries)
        assert stale == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize("name", ["bursts", "join", "queries"])
def test_phases_add_up_to_the_whole_run(name):
    adds_up(dsms.read_plan(PLANS / f"{name}.toml"), 1500)


@DETERMINISTIC
@given(table=plan_tables(), steps=st.integers(0, 20))
def test_phases_of_any_run_add_up(table: dict[str, Any], steps: int) -> None:
    adds_up(dsms.plan_from(table), steps)
