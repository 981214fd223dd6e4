"""Segments that wait while others run: its limit, and the count of decisions whose favourite had no work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from support.strategies import FEW, POLICIES, is_suitable, is_takeable, list_queue, make_path_plan, plan_tables, policy

import dsms
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.starvation import StarvationGuard
from dsms.plan.segment import Segment


class TurnLog(Observer):
    """When each turn started, and at which station."""

    trusted = True

    def __init__(self) -> None:
        self.seen: list[tuple[float, str]] = []

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        self.seen.append((start, steps[0].queue.station.name))


def contest(**run: Any) -> dsms.Plan:
    """Greedy prefers a, which has ten tuples of 1 at time 0, to b, which has two of 2."""
    return dsms.plan_from({
        "streams": {n: {"arrivals": {"kind": "list", "at": [0] * count}} for n, count in (("s", 10), ("t", 2))},
        "queries": {"p": {"from": "s", "operators": [{"name": "a", "cost": 1.0}]},
                    "q": {"from": "t", "operators": [{"name": "b", "cost": 2.0}]}},
        "run": run,
    })  # fmt: skip


def run(plan: dsms.Plan, text: str) -> tuple[Engine, list[tuple[float, str]]]:
    turns = TurnLog()
    engine = Engine(plan, policy(text), observers=[turns])
    engine.run()
    return engine, turns.seen


# --- the limit


def test_without_a_limit_the_favourite_runs_first_however_long_others_wait() -> None:
    engine, seen = run(contest(), "greedy")
    assert [start for start, name in seen if name == "b"] == [10, 12]
    assert engine.overdue == 0


def test_past_the_limit_a_segment_runs_whatever_its_priority() -> None:
    """b waits from 0; at 3 it has not waited more than 3. From its turn at 4 it waits again, and at 8 for 4."""
    engine, seen = run(contest(max_wait=3), "greedy")
    assert seen[:8] == [(0, "a"), (1, "a"), (2, "a"), (3, "a"), (4, "b"), (6, "a"), (7, "a"), (8, "b")]
    assert engine.overdue == 2


def test_a_favourite_that_has_waited_too_long_itself_is_not_counted() -> None:
    """Turns of 4 with a limit of 3: the segment that waited longest is overdue each time, but is first anyway."""
    engine, _ = run(make_path_plan({"cost": 4.0}, at=[0, 0, 0], max_wait=3), "greedy")
    assert engine.overdue == 0


def test_of_several_overdue_the_one_that_has_waited_longest_goes_first() -> None:
    plan = dsms.plan_from({
        "streams": {n: {"arrivals": {"kind": "list", "at": at}}
                    for n, at in (("s", [0] * 20), ("t", [1.0]), ("u", [0.0]))},
        "queries": {"p": {"from": "s", "operators": [{"name": "a", "cost": 1.0}]},
                    "q": {"from": "t", "operators": [{"name": "b", "cost": 2.0}]},
                    "r": {"from": "u", "operators": [{"name": "c", "cost": 4.0}]}},
        "run": {"max_wait": 3.5},
    })  # fmt: skip
    engine, seen = run(plan, "greedy")
    assert seen[4:6] == [(4, "c"), (8, "b")]  # though b is the greedier of the two
    assert seen[6] == (10, "a")  # it has waited for 6 by then, but is the first anyway
    assert engine.overdue == 2


def test_results_are_the_same_with_a_limit() -> None:
    free, limited = (dsms.simulate(contest(**run), "greedy") for run in ({}, {"max_wait": 0.5}))
    assert (free.outputs, free.elapsed) == (limited.outputs, limited.elapsed)


def test_the_limit_must_be_positive() -> None:
    for wrong in (0, -1, "soon"):
        with pytest.raises(dsms.PlanError, match=r"run\.max_wait: .* is not a positive number"):
            contest(max_wait=wrong)


class WaitObserver(Observer):
    """Measures from the queues, at every decision, how long each segment with work has waited."""

    trusted = True

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: dict[int, float] = {}
        self._longest = 0.0

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, now: float) -> None:
        ready = self._ready()
        self._since = {serial: self._since.get(serial, now) for serial in ready}
        # Its last turn is part of the wait; then each segment before it in the order has one turn at most.
        bound = max(self._limit, self._longest) + (len(self._segments()) - 1) * self._longest
        waits = {repr(ready[serial]): now - since for serial, since in self._since.items()}
        assert all(wait <= bound + 1e-9 for wait in waits.values()), (waits, bound)

    def turn(self, start: float, segment: Segment, steps: Sequence[Any]) -> None:
        self._longest = max(self._longest, sum(step.cost for step in steps))
        self._since[segment.serial] = start
        ready = self._ready()
        self._since = {serial: since for serial, since in self._since.items() if serial in ready}

    def _segments(self) -> dict[int, Segment]:
        return {segment.serial: segment for queue in self._engine.ledger.queues for segment in queue.segments}

    def _ready(self) -> dict[int, Segment]:
        engine = self._engine
        return {
            serial: segment
            for serial, segment in self._segments().items()
            if any(list_queue(engine.runner, queue) and is_takeable(engine, queue) for queue in segment.queues)
        }


@FEW
@given(table=plan_tables(), limit=st.sampled_from((0.25, 1.0, 5.0)))
def test_no_segment_waits_longer_than_the_limit_and_a_turn_for_each_other(table: dict[str, Any], limit: float) -> None:
    for text in POLICIES:
        plan = dsms.plan_from(table | {"run": table["run"] | {"max_wait": limit}})
        if is_suitable(text, plan):
            note(f"policy {text}")
            Engine(plan, policy(text), observers=[WaitObserver(limit)]).run()


def test_a_union_set_free_by_what_happened_upstream_waits_from_then_on() -> None:
    """u's tuple of S is free at 1, when a has dropped the older one of R; h, the favourite, has forty tuples."""
    plan = dsms.plan_from({
        "streams": {n: {"arrivals": {"kind": "list", "at": at}}
                    for n, at in (("R", [0]), ("S", [0]), ("H", [0.5] * 40))},
        "queries": {"q": {"operators": [{"name": "a", "inputs": ["R"], "cost": 1.0, "selectivity": 0.0},
                                        {"name": "u", "inputs": ["a", "S"], "cost": 4.0}]},
                    "p": {"from": "H", "operators": [{"name": "h", "cost": 0.5}]}},
        "run": {"max_wait": 3},
    })  # fmt: skip
    _, seen = run(plan, "greedy")
    assert [start for start, name in seen if name == "u"] == [4.5]


# --- Raindrop's starvation


@pytest.mark.parametrize(
    ("text", "count"),
    [("greedy", 2), ("chain", 0), ("fifo", 0), ("mtiq", 0), ("rr", 0), ("fas-mcq", 0)],
)
def test_d14_the_favourite_without_work_is_a_starvation(text: str, count: int) -> None:
    """a leaves half, b frees the rest: greedy ranks b (1) before a (½), and finds it empty for each of two tuples.

    Chain runs both as one segment. FIFO has no favourites. Policies that rank by backlog skip empty queues.
    """
    plan = make_path_plan({"cost": 1.0, "selectivity": 0.5}, {"cost": 1.0}, at=[0, 5], tuples="fractional")
    assert run(plan, text)[0].starvations == count


def test_d14_chain_starves_while_its_steepest_part_is_empty() -> None:
    """Slopes 0.75 and 0.125: both tuples pass a, then b has two turns in which a has nothing."""
    plan = make_path_plan({"cost": 1.0, "selectivity": 0.25}, {"cost": 8.0}, at=[0, 0], tuples="fractional")
    assert run(plan, "chain")[0].starvations == 2


def test_d14_a_favourite_that_shares_its_rank_with_one_that_has_work_does_not_count() -> None:
    assert (
        run(make_path_plan({"cost": 2.0, "selectivity": 0.5}, {"cost": 4.0}, at=[0], tuples="fractional"), "greedy")[
            0
        ].starvations
        == 0
    )


def test_d14_waiting_is_not_a_decision() -> None:
    plan = make_path_plan({"cost": 1.0, "selectivity": 0.5}, {"cost": 1.0}, at=[0, 100, 200], tuples="fractional")
    assert run(plan, "greedy")[0].starvations == 3


def test_d14_a_turn_of_one_that_is_overdue_is_no_starvation_where_the_favourite_has_work() -> None:
    engine, seen = run(contest(max_wait=3), "greedy")
    assert [name for _, name in seen[-1:]] == ["a"]
    assert engine.overdue == 2
    assert engine.starvations == 0


def test_two_inputs_that_change_while_deciding_takes_time_are_both_known_before_anything_is_ranked() -> None:
    """What has come into b while a's tuple was being decided on must not be ranked by a's old head."""
    table = {
        "streams": {
            "a": {"arrivals": {"kind": "list", "at": [0.0]}},
            "b": {"arrivals": {"kind": "list", "at": [0.005]}},
        },
        "queries": {"q": {"operators": [{"name": "u", "cost": 1, "inputs": ["a", "b"]}]}},
        "run": {"scheduling_cost": 0.01},
    }
    assert dsms.simulate(table, "tuple-greedy").outputs == 2


def test_who_waits_is_not_written_down_where_nobody_asks() -> None:
    plan = make_path_plan({"cost": 0.5}, {"cost": 0.5}, at=[float(i) for i in range(500)], scheduling_cost=0.001)
    engine = Engine(plan, policy("fas-mcq"))
    engine.run()
    assert isinstance(engine.control.ready, StarvationGuard)
    assert len(engine.control.ready._wait_queue) == 0
