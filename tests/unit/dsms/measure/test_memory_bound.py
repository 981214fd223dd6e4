"""The least memory any scheduler could do with: never above what is measured, and reached where it can be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from support.strategies import (
    DETERMINISTIC,
    FEW,
    POLICIES,
    is_suitable,
    make_path_plan,
    operator_tables,
    plan_tables,
    policy,
)

import dsms
from dsms.charts import ChartPiece, FluidModel
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.statistics import Statistics
from dsms.measure.memory_bound import MemoryBound, build_charts
from dsms.plan.graph import Plan

NEAR = 1e-9


class Compared(Observer):
    """The bound and what is held, wherever one of them is at its extreme: after every event, and before the next."""

    trusted = True

    def __init__(self, bound: MemoryBound) -> None:
        self._bound = bound
        self.seen: list[tuple[float, float, float]] = []

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def elapse(self, now: float) -> None:
        self._look()  # since the last event, from when on the bound has only fallen
        self._bound.advance(now)
        self._look()

    def _look(self) -> None:
        bound = self._bound.tuples
        assert bound is not None
        self.seen.append((self._engine.clock.now(), bound, self._engine.ledger.held))


def compared(plan: Plan, text: str) -> list[tuple[float, float, float]]:
    """(now, bound, held) all along a run."""
    bound = MemoryBound(plan)
    watching = Compared(bound)
    Engine(plan, policy(text), observers=[watching, bound]).run()
    return watching.seen


@st.composite
def paths(draw: st.DrawFn) -> dict[str, Any]:
    """One to three paths, each with a stream of its own."""
    streams, queries = {}, {}
    for name in ("s", "t", "u")[: draw(st.integers(1, 3))]:
        gaps = draw(st.lists(st.sampled_from((0.0, 0.0, 0.25, 1.0, 3.5)), min_size=2, max_size=12))
        at = [sum(gaps[: place + 1]) for place in range(len(gaps))]
        streams[name] = {"arrivals": {"kind": "list", "at": at}}
        operators = draw(st.lists(operator_tables(fractional=True, into=len(at)), min_size=1, max_size=5))
        named = [{**operator, "name": f"{name}{place}"} for place, operator in enumerate(operators)]
        queries[f"q{name}"] = {"from": name, "operators": named}
    run = {"tuples": "fractional", "slice": draw(st.sampled_from((0.5, 1.5, 4.0)))}
    if draw(st.booleans()):
        del run["slice"]
    return {"streams": streams, "queries": queries, "run": run}


def held_to_the_bound(table: dict[str, Any]) -> None:
    plan = dsms.plan_from(table)
    for text in POLICIES:
        if is_suitable(text, plan):
            note(f"policy {text}")
            for now, bound, held in compared(plan, text):
                assert bound <= held + NEAR, f"at {now}"


@DETERMINISTIC
@given(table=paths())
def test_no_policy_ever_holds_less_on_paths_with_streams_of_their_own(table: dict[str, Any]) -> None:
    held_to_the_bound(table)


@FEW
@given(table=plan_tables(tuples=("fractional",)))
def test_no_policy_ever_holds_less_where_streams_are_shared_fork_or_meet(table: dict[str, Any]) -> None:
    held_to_the_bound(table | {"run": table["run"] | {"in_service": True}})


FLAT = ({"cost": 1.0, "selectivity": 0.2}, {"cost": 5.0, "selectivity": 0.0})  # its chart is its envelope


def at_the_ends_of_turns(plan: Plan, text: str) -> list[tuple[float, float]]:
    """(bound, held) whenever a turn is done."""
    bound = MemoryBound(plan)
    engine = Engine(plan, policy(text), observers=[bound])
    ends = []
    while engine.step():
        bound.advance(engine.clock.now())
        assert bound.tuples is not None
        ends.append((bound.tuples, engine.ledger.held))
    return ends


def test_chain_reaches_it_at_the_end_of_every_turn_where_the_envelope_is_the_chart() -> None:
    """Whole tuples at 0: between the ends of turns a tuple counts in full until its step is done."""
    ends = at_the_ends_of_turns(make_path_plan(*FLAT, at=[0.0] * 5, tuples="fractional"), "chain")
    assert len(ends) >= 10
    assert [bound for bound, _ in ends] == pytest.approx([held for _, held in ends], abs=NEAR)


def test_first_in_first_out_is_above_it_as_soon_as_it_leaves_what_shrinks_faster() -> None:
    """Of two tuples at 0 the first is brought to its end before the second is begun."""
    bounds, held = zip(
        *at_the_ends_of_turns(make_path_plan(*FLAT, at=[0.0, 0.0], tuples="fractional"), "fifo"), strict=False
    )
    assert held[:3] == pytest.approx((1.2, 1.0, 0.2))
    assert bounds[:3] == pytest.approx((1.2, 0.4, 0.2))


def test_a_paced_clock_with_half_a_cpu_gets_half_as_far() -> None:
    plan = make_path_plan(*FLAT, at=[], tuples="fractional")
    engine = Engine(plan, policy("fifo"))
    engine.clock.budget = 0.5
    bound = MemoryBound(plan)
    engine.watch(bound)
    engine.push("s", 1)
    bound.advance(1.0)
    assert bound.tuples == pytest.approx(1 - 0.5 * 0.8)


def test_in_bytes_tuples_count_for_their_size() -> None:
    plan = make_path_plan({"cost": 2.0, "selectivity": 0.5, "size": 2.0}, {"cost": 1.0}, at=[], stream={"size": 4.0})
    assert [piece.gain for piece in build_charts(plan, Statistics(plan), sized=True)[0]] == [4.0]
    assert [piece.gain for piece in build_charts(plan, Statistics(plan))[0]] == [1.0]


def pieces(*ways: tuple[str, float, float]) -> list[ChartPiece[str]]:
    return [ChartPiece((name,), time, gain) for name, time, gain in ways]


def test_work_goes_to_what_shrinks_fastest_whatever_came_first() -> None:
    fluid = FluidModel([pieces(("slow", 2.0, 1.0)), pieces(("fast", 1.0, 0.75), ("last", 5.0, 0.25))])
    fluid.add(0, 1)
    fluid.add(1, 2)
    assert fluid.held == 3
    fluid.work(2.0)
    assert fluid.held == 1.5
    fluid.work(1.0)
    assert fluid.held == 1.0
    fluid.work(100.0)
    assert fluid.held == 0


def test_charts_drawn_anew_leave_as_much_as_there_was() -> None:
    before = FluidModel([pieces(("a", 1.0, 0.5), ("b", 2.0, 0.5))])
    before.add(0, 4)
    before.work(3.0)
    after = FluidModel([[ChartPiece(("a", "b"), 2.0, 1.0)]])
    after.migrate_from(before, {0: 0})
    assert after.held == pytest.approx(before.held)
    same = FluidModel([pieces(("a", 1.0, 0.5), ("b", 2.0, 0.5))])
    same.migrate_from(before, {0: 0})
    for fluid in (before, same):
        fluid.work(2.0)
    assert same.held == pytest.approx(before.held)


def test_a_plan_with_too_many_ways_has_none() -> None:
    operators = [{"name": "a0", "inputs": ["s"]}, {"name": "b0", "inputs": ["s"]}]
    for step in range(1, 16):
        both = [f"a{step - 1}", f"b{step - 1}"]
        operators += [{"name": f"{side}{step}", "inputs": both} for side in "ab"]
    table = {"streams": {"s": {}}, "queries": {"q": {"operators": [{"cost": 1.0, **o} for o in operators]}}}
    plan = dsms.plan_from(table)
    bound = MemoryBound(plan)
    engine = Engine(plan, policy("fifo"), observers=[bound])
    engine.push("s", 3)
    assert bound.tuples is None
