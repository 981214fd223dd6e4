"""What a live domain shows of itself, against what can be worked out by hand and against `dsms sim`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.monitored import Hand, table, watched
from support.paths import PLANS
from support.strategies import DETERMINISTIC, plan_tables

import dsms
from dsms.clock import PacedClock
from dsms.engine.engine import Engine
from dsms.live.monitor.monitor import Monitor
from dsms.live.monitor.status import LatencyStatus, StreamStatus, to_json
from dsms.measure.histogram import BUCKETS_PER_DECADE
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named

BUCKET = 10 ** (1 / BUCKETS_PER_DECADE)  # how far a quantile may be off


def by_name(found: Sequence[Any]) -> dict[str, Any]:
    return {row.name: row for row in found}


def test_before_anything_has_happened_nothing_is_divided_by_zero():
    watch, engine = watched(dsms.plan_from(table()))
    status = watch.status(engine)
    assert (status.now, status.turns, status.utilisation, status.idle_with_work) == (0, 0, 0, 0)
    assert status.latency == LatencyStatus()
    assert status.streams == [StreamStatus("s", 0, 0.0)]
    assert by_name(status.stations)["b"].cost == 4
    assert watch.why(5) == []
    json.dumps(to_json(status), allow_nan=False)


def test_a_run_of_two_queries_by_hand():
    """fifo: a 1–3, b 3–7, a 7–9, b 9–13; shown are the seconds from 8 on, in which a is done at 9 and b at 13."""
    watch, engine = watched(dsms.plan_from(table()))
    engine.run()
    status = watch.status(engine)
    assert (status.policy, status.decides, status.held, status.turns, status.swaps) == (
        "fifo", "fifo", 0, 4, 0,
    )  # fmt: skip
    assert status.utilisation == 1
    assert status.streams == [StreamStatus("s", 2, 0)]
    queries = by_name(status.queries)
    assert [(q.weight, q.results, q.rate) for q in queries.values()] == [(1, 2, 0.2), (3, 2, 0.2)]
    assert queries["p"].latency.mean == 7  # arrived at 2, left at 9
    assert queries["q"].latency.p50 == pytest.approx(11, rel=BUCKET - 1)
    assert status.latency.mean == 9
    assert queries["p"].staleness == pytest.approx(1 / 5)  # of 8 to 13, until 9
    assert status.staleness == pytest.approx((1 / 5 + 1) / 2)
    stations = by_name(status.stations)
    assert (stations["a"].busy, stations["b"].busy) == (1 / 5, 4 / 5)
    assert (stations["b"].rate_in, stations["b"].rate_out, stations["b"].selectivity) == (0.2, 0.2, 1)
    assert (stations["b"].queue, stations["b"].priority, stations["b"].query) == (0, None, "q")
    assert to_json(status.phases) == [
        {
            "policy": "fifo", "since": 0, "until": None, "reason": "the first", "swap_seconds": None, "turns": 4,
            "choices": 0, "memory_mean": pytest.approx((1 + 5 * 2 + 6) / 13), "memory_max": 2, "results": 4,
            "latency_mean": (2 + 6 + 7 + 11) / 4, "latency_p99": pytest.approx(11, rel=BUCKET - 1),
            "staleness": pytest.approx((8 + 12) / 2 / 13),
        }
    ]  # fmt: skip


def test_what_was_done_falls_out_of_the_last_seconds_but_not_of_the_whole():
    watch, engine = watched(dsms.plan_from(table()))
    engine.run()
    engine.clock.wait_until(100)
    status = watch.status(engine)
    assert (status.utilisation, status.staleness, status.latency.p99) == (0, 0, None)
    assert [query.results for query in status.queries] == [2, 2]
    assert status.phases[0].memory_mean == pytest.approx(17 / 100)


def test_arrivals_during_a_turn_do_not_move_its_work_to_another_second():
    """b works from 3 to 7 and is reported at 7, when 6's arrival has come; at 7 the seconds from 2 on are shown."""
    watch, engine = watched(dsms.plan_from(table([1, 2, 4, 5.5, 6])))
    while engine.clock.now() < 7:
        engine.step()
    status = watch.status(engine)
    stations = by_name(status.stations)
    assert (stations["a"].busy, stations["b"].busy, status.utilisation) == (1 / 5, 4 / 5, 1)
    assert status.streams == [StreamStatus("s", 5, 4 / 5)]


def test_who_has_work_has_a_priority():
    """b counts three times as much: 3/4 against 1/2, and so twice; a then has two tuples to do, each in 2."""
    watch, engine = watched(dsms.plan_from(table()), "fas-mcq")
    for _ in range(3):  # the first waits for an arrival
        engine.step()
    stations = by_name(watch.status(engine).stations)
    assert (stations["a"].queue, stations["b"].queue) == (2, 0)
    assert stations["a"].priority == pytest.approx(1 / 3 / (2 * 2))
    assert stations["b"].priority is None


def test_fractional_tuples_are_watched_too():
    """Chain's example under chain: one at a time until 7, of which a fifth stays; then the slow operator."""
    watch, engine = watched(dsms.read_plan(PLANS / "chain-example.toml"), "chain")
    engine.run()
    run = dsms.simulate(PLANS / "chain-example.toml", "chain")
    (phase,) = watch.status(engine).phases
    assert phase.memory_mean == pytest.approx(run.memory.tuples.mean)
    assert phase.memory_max == pytest.approx(run.memory.tuples.max)
    assert phase.staleness is None


def agrees(plan: Plan, policy: str) -> None:
    watch, engine = watched(plan, policy)
    engine.run()
    status = watch.status(engine)
    run = dsms.simulate(plan, policy)
    (phase,) = status.phases
    assert (phase.turns, phase.results) == (run.turns, run.outputs)
    assert phase.memory_max == pytest.approx(run.memory.tuples.max)
    assert (phase.memory_mean or 0) == pytest.approx(run.memory.tuples.mean)
    assert phase.latency_mean == pytest.approx(run.latency.mean)
    assert (phase.staleness or 0) == pytest.approx(run.staleness.mean or 0, abs=1e-9)
    assert {q.name: q.results for q in status.queries} == {n: q.outputs for n, q in run.queries.items()}
    if run.outputs >= 1000:
        assert phase.latency_p99 == pytest.approx(run.latency.p99, rel=BUCKET - 1)
    json.dumps(to_json(status), allow_nan=False)
    json.dumps(watch.why(20), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "policy"),
    [("bursts", "chain"), ("bursts", "rr"), ("join", "fifo"), ("join", "fas-mcq"), ("queries", "adaptive")],
)
def test_a_whole_run_agrees_with_the_simulator(name, policy):
    agrees(dsms.read_plan(PLANS / f"{name}.toml"), policy)


@DETERMINISTIC
@given(table=plan_tables())
def test_any_run_agrees_with_the_simulator(table: dict[str, Any]) -> None:
    plan = dsms.plan_from(table)
    if not plan.settings.fractional:
        agrees(plan, "fifo")


def test_time_in_which_work_waits_and_nobody_works_is_idle():
    """Each turn takes twice its cost; the queues are empty before 1 and from 13 · 2 on."""
    watch, engine = watched(dsms.plan_from(table([1])), clock=Hand())
    engine.run()  # a 1–5, b 5–13
    status = watch.status(engine)
    assert status.now == 13
    assert status.utilisation == pytest.approx(1 / 5)  # b's cost is accounted for from 5 to 9
    assert status.idle_with_work == pytest.approx(4 / 5)


def test_what_waits_for_other_tuples_is_not_idle():
    """r's tuple waits for s's until 5, is done at 7, s's at 9; of 4 to 9 half of the turns is idle."""
    streams = {name: {"arrivals": {"kind": "list", "at": [at]}} for name, at in (("r", 0), ("s", 5))}
    queries = {"j": {"operators": [{"name": "both", "cost": 1, "inputs": ["r", "s"]}]}}
    plan = dsms.plan_from({"streams": streams, "queries": queries, "run": {"bounds": False}})
    watch, engine = watched(plan, clock=Hand())
    engine.run()
    status = watch.status(engine)
    assert (status.now, status.utilisation, status.idle_with_work) == (9, 2 / 5, 2 / 5)


def test_a_paced_clock_works_for_as_long_as_it_waits():
    watch, engine = watched(dsms.plan_from(table([0.0])), clock=PacedClock(budget=100.0))
    engine.run()
    status = watch.status(engine)
    a, b = (by_name(status.stations)[name] for name in "ab")
    assert (a.cost, b.cost) == pytest.approx((2, 4))
    assert b.busy == pytest.approx(2 * a.busy)
    assert status.utilisation > 0.5


def sizes(found: Any) -> int:
    """Of all lists and dicts in it, however deep, that are its own."""
    seen, todo, size = set[int](), [found], 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, Engine | Plan) or type(one).__module__ == "dsms.engine.ledger":
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            todo += one.values()
        elif hasattr(one, "__len__") and not isinstance(one, str):
            size += len(one)
            if not hasattr(one, "dtype"):
                todo += one
        elif hasattr(one, "__dict__"):
            todo += vars(one).values()
    return size


def test_memory_does_not_grow_with_time():
    many = table(list(range(60_000)))
    many["queries"]["p"]["operators"][0]["cost"] = many["queries"]["q"]["operators"][0]["cost"] = 0.4
    watch, engine = watched(dsms.plan_from(many))
    known = []
    for turns in (1_000, 100_000):
        while watch.status(engine).turns < turns:
            for _ in range(turns // 2):
                engine.step()
        known.append(sizes(watch))
    assert known[1] <= 1.1 * known[0]


def test_queries_that_stay_keep_what_is_known_of_them():
    before, more = table([0, 1, 2, 3]), table([0, 1, 2, 3])
    more["queries"]["r"] = {"from": "s", "operators": [{"name": "c", "cost": 1}]}
    del more["queries"]["p"]
    watch, engine = watched(dsms.plan_from(before))
    for _ in range(4):
        engine.step()
    then = by_name(watch.status(engine).queries)
    plan = dsms.plan_from(more)
    after = watch.migrate(plan)
    clock = engine.clock
    engine = Engine(plan, policy_named("fifo"), clock=clock, observers=after.observers, until=0)
    status = after.status(engine)
    now = by_name(status.queries)
    assert list(now) == ["q", "r"]
    assert now["q"] == then["q"]
    assert (now["r"].results, now["r"].rate, now["r"].latency.mean) == (0, 0, None)
    assert [phase.turns for phase in status.phases] == [4]
    assert after.why(1)[0]["number"] == 4
    assert by_name(status.stations)["b"].rate_in > 0
    engine.run()
    assert [phase.turns for phase in after.status(engine).phases] == [4 + 2]  # the one arrival at 0, twice


def test_what_nobody_has_watched_is_carried_as_new():
    plan = dsms.plan_from(table())
    watch = Monitor(plan).migrate(plan)
    assert watch.phases.present.turns == 0


@given(st.integers(-3, 30))
def test_the_last_decisions_come_newest_first(count: int) -> None:
    watch, engine = watched(dsms.plan_from(table(list(range(1, 40)))))
    engine.run()
    found = watch.why(count)
    numbers = [decision["number"] for decision in found]
    assert len(found) == max(0, min(count, 20))
    assert numbers == sorted(numbers, reverse=True)


def test_a_decision_is_what_the_simulator_says_of_it():
    watch, engine = watched(dsms.plan_from(table()), "fas-mcq")
    engine.run()
    for found in watch.why(20):
        assert found == dsms.why(table(), "fas-mcq", found["at"]).to_json() | {"reason": found["reason"]}
        assert dsms.why(table(), "fas-mcq", found["at"]).reason.startswith(found["reason"])
