"""Three clocks behind three methods, and the same engine on each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.strategies import QueueHistory, make_path_plan, policy

import dsms
from dsms import Batch, Clock, PacedClock, VirtualClock, WallClock
from dsms.clock import LATENESS_LIMIT_S
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.runners import BatchRunner, Step
from dsms.plan.segment import Segment


class FakeTimeModule:
    """The time module, without waiting: sleeping is what makes time go by, and each look at it takes a moment."""

    def __init__(self, look: float = 0.0) -> None:
        self.now, self.look = 1024.0, look
        self.slept: list[float] = []

    def monotonic(self) -> float:
        self.now += self.look
        return self.now

    perf_counter = thread_time = monotonic

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTimeModule:
    fake = FakeTimeModule()
    monkeypatch.setattr("dsms.clock.time", fake)
    return fake


CLOCKS = {"virtual": VirtualClock, "paced": PacedClock, "wall": WallClock}
every_clock = pytest.mark.parametrize("kind", CLOCKS)


@every_clock
def test_a_clock_starts_at_0_and_never_goes_back(kind: str, time: FakeTimeModule) -> None:
    clock: Clock = CLOCKS[kind]()
    assert clock.now() == 0
    clock.wait_until(2.5)
    assert clock.now() == 2.5
    clock.wait_until(1.0)
    assert clock.now() == 2.5


def test_virtual_time_passes_by_declared_cost_alone(time: FakeTimeModule) -> None:
    clock = VirtualClock()
    assert clock.spend(0.75) == clock.now() == 0.75
    assert (clock.meter(), clock.slice, time.slept) == (None, None, [])


def test_paced_time_waits_the_declared_cost_out(time: FakeTimeModule) -> None:
    clock = PacedClock()
    assert clock.spend(0.75) == clock.now() == 0.75
    assert (clock.meter(), time.slept) == (None, [0.75])


def test_a_paced_clock_that_is_late_sleeps_less_until_it_has_caught_up(time: FakeTimeModule) -> None:
    clock = PacedClock()
    clock.spend(0.01)
    time.now += 0.03  # decisions and messages
    assert clock.now() == pytest.approx(0.01)
    assert [clock.spend(0.02), clock.spend(0.02)] == pytest.approx([0.03, 0.05])
    assert time.slept == pytest.approx([0.01, 0.0, 0.01])


def test_a_paced_clock_is_never_later_than_its_limit(time: FakeTimeModule) -> None:
    clock = PacedClock()
    clock.spend(0.01)
    time.now += 1.0
    assert clock.now() == pytest.approx(1.01 - LATENESS_LIMIT_S)


def test_time_without_work_is_not_made_up_for(time: FakeTimeModule) -> None:
    clock = PacedClock()
    clock.spend(0.01)
    clock.idle()
    time.now += 0.05
    assert clock.admit() == pytest.approx(0.06)
    time.now += 0.02  # the decision
    assert clock.spend(0.03) == pytest.approx(0.09)
    assert time.slept == pytest.approx([0.01, 0.01])


def test_rows_are_not_admitted_before_they_were_due(time: FakeTimeModule) -> None:
    clock = PacedClock()
    clock.spend(0.01)
    time.now += 0.05
    assert clock.admit(due=0.04) == pytest.approx(0.04)
    assert clock.admit(due=7.0) == pytest.approx(0.06)  # the client's clock is ahead of ours


def test_a_late_paced_clock_admits_an_arrival_at_its_own_instant(time: FakeTimeModule) -> None:
    clock = PacedClock()
    clock.spend(0.01)
    time.now += 0.05
    clock.wait_until(0.02)
    assert clock.now() == 0.02
    assert time.slept[1:] == [0.0]


def test_a_sleep_that_ends_early_does_not_move_a_paced_clock_to_its_end(time: FakeTimeModule) -> None:
    clock = PacedClock(sleep=lambda seconds: time.sleep(seconds / 2))
    clock.wait_until(0.5)
    assert clock.now() == 0.25


def test_wall_time_is_not_moved_by_declared_cost(time: FakeTimeModule) -> None:
    clock = WallClock()
    time.now += 0.5  # what the work has taken
    assert clock.spend(7.0) == 0.5
    assert time.slept == []
    assert clock.meter() == time.now


def test_a_paced_clock_really_waits() -> None:
    clock = PacedClock()
    before = clock.now()
    assert clock.spend(0.004) - before >= 0.002


# --- the same engine on each


class Left(Observer):
    """The results of a run."""

    trusted = True

    def __init__(self) -> None:
        self.results: Counter[str] = Counter()
        self.taken: list[float] = []

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        for queue, taken, _, _, _, gone, _ in steps:
            self.results[queue.station.query.name] += len(gone)
            self.taken.append(taken)


def on(kind: str, plan: dsms.Plan, *observers: Observer, text: str = "fifo") -> Engine:
    return Engine(plan, policy(text), clock=CLOCKS[kind](), observers=observers)


FORK = {
    "streams": {"s": {"arrivals": {"kind": "list", "at": [0, 0, 0.25, 0.5, 0.5, 2.0]}}},
    "queries": {
        "q": {
            "from": "s",
            "operators": [{"name": "a", "cost": 0.125, "selectivity": 0.7}, {"name": "b", "cost": 0.25}],
        },
        "r": {"operators": [{"name": "c", "cost": 0.125, "selectivity": 1.7, "inputs": ["a", "s"]}]},
    },
}


@pytest.mark.parametrize("text", ["fifo", "rr", "rr-query", "greedy", "mtiq"])
def test_abstract_load_gives_the_same_results_on_every_clock(text: str, time: FakeTimeModule) -> None:
    time.look = 2.0**-20
    results = []
    for kind in CLOCKS:
        left = Left()
        engine = on(kind, dsms.plan_from(FORK), left, text=text)
        engine.run()
        assert (engine.admitted, engine.ledger.held) == (6, 0)
        results.append(left.results)
    assert results[0] == results[1] == results[2]
    assert all(results[0].values())


def test_a_paced_run_of_declared_costs_takes_as_long_as_the_simulated_one(time: FakeTimeModule) -> None:
    plan = make_path_plan({"cost": 0.25}, {"cost": 0.5, "selectivity": 0.5}, at=[0, 0, 4], selectivity="spread")
    engines = [on(kind, plan) for kind in ("virtual", "paced")]
    for engine in engines:
        engine.run()
    assert engines[0].clock.now() == engines[1].clock.now() == 4.75


def large(batch: Batch) -> Any:
    return batch.columns["size"] > 2


def doubled(batch: Batch) -> Batch:
    return batch.pick(np.repeat(np.arange(len(batch)), 2))


def rows(kind: str, declared: bool = True) -> tuple[Engine, Left]:
    large_costs, doubled_costs = ({"cost": 0.125}, {"cost": 0.25}) if declared else ({}, {})
    table = {
        "streams": {"s": {}},
        "queries": {
            "q": {
                "from": "s",
                "operators": [
                    {"name": "large", "function": large, "selectivity": 0.5, **large_costs},
                    {"name": "doubled", "function": doubled, "selectivity": 2.0, **doubled_costs},
                ],
            }
        },
    }
    left = Left()
    return on(kind, dsms.plan_from(table), left), left


@every_clock
def test_pushed_rows_give_the_same_results_on_every_clock(kind: str, time: FakeTimeModule) -> None:
    time.look = 2.0**-20
    engine, left = rows(kind)
    engine.push("s", Batch.of({"size": [1, 2, 3, 4]}))
    engine.push("s", Batch.of({"size": [9, 0]}))
    engine.run()
    engine.push("s", Batch.of({"size": [5]}))
    engine.run()
    assert (engine.admitted, left.results, engine.ledger.held) == (7, {"q": 8}, 0)


@pytest.mark.parametrize("declared", [True, False])
def test_a_batch_is_cut_on_every_clock_that_knows_what_a_row_costs(declared: bool, time: FakeTimeModule) -> None:
    """Its rows cost more than a slice; a wall clock takes the batch whole where nothing is declared or measured."""
    time.look = 2.0**-20
    taken = {}
    for kind in CLOCKS:
        engine, left = rows(kind, declared)
        engine.push("s", Batch.of({"size": [3, 4, 5]}))
        engine.run()
        taken[kind] = left.taken
    assert taken["virtual"] == [1] * 6
    assert taken["paced"] == ([1] * 6 if declared else [3, 3])
    assert taken["wall"] == ([1] * 6 if declared else [3, 3])


def test_a_wall_clock_measures_what_work_costs(time: FakeTimeModule) -> None:
    def slow(batch: Batch) -> Batch:
        time.now += 0.5
        return batch

    table = {"streams": {"s": {}}, "queries": {"q": {"from": "s", "operators": [{"name": "a", "function": slow}]}}}
    costs: list[float] = []

    class CostObserver(Observer):
        trusted = True

        def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
            costs.extend(step.cost for step in steps)

    engine = on("wall", dsms.plan_from(table), CostObserver())
    engine.push("s", Batch.of({"x": [1, 2]}))
    engine.run()
    assert costs == [0.5]


def test_rows_keep_the_instant_at_which_they_were_pushed(time: FakeTimeModule) -> None:
    """Latency counts from there: 0.125 for the filter, 0.25 for each row doubled."""
    engine, _ = rows("virtual")
    engine.push("s", Batch.of({"size": [3]}))
    engine.run()
    journal = engine.journal
    assert [(arrived, left, count) for _, left, arrived, count in journal.result_runs] == [(0, 0.375, 2)]


@pytest.mark.parametrize("runner", [None, BatchRunner])
def test_a_number_of_abstract_tuples_can_be_pushed_beside_those_that_come_by_themselves(runner: Any) -> None:
    """The pushed ones have numbers of their own, so that the others are who they would be without them."""
    operator = {"cost": 1, "selectivity": 0.5}
    pushed, alone = QueueHistory(), QueueHistory()
    engine = Engine(make_path_plan(operator, at=[0, 10, 11], seed=3), policy("fifo"), runner=runner, observers=[pushed])
    engine.step()
    engine.push("s", 2)
    engine.run()
    assert engine.admitted == 5
    dsms.simulate(make_path_plan(operator, at=[0, 10, 11], seed=3), "fifo", observers=[alone])
    fates, seen = (Counter(record.seq for _, record in history.results) for history in (alone, pushed))
    assert [seen[seq] for seq in (0, 3, 4)] == [fates[number] for number in (0, 1, 2)]


def test_tuples_can_be_pushed_into_a_stream_whose_list_carries_costs() -> None:
    """What the list does not say of them is as declared."""
    arrivals = {"kind": "list", "at": [0, 10], "cost": [2.0, 3.0]}
    engine = Engine(make_path_plan({"cost": 1}, at=[], stream={"arrivals": arrivals}), policy("fifo"))
    engine.step()
    engine.push("s", 1)
    engine.run()
    assert engine.clock.now() == 13
    assert engine.admitted == 3
