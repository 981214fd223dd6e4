"""Rows given up: which, by whom, and that all accounts come out right."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live.domains import ResultCollector, batch, domain_of, settled
from support.markdown import block_with
from support.strategies import DETERMINISTIC

import dsms
from dsms.data.batch import Batch
from dsms.engine.ledger import NO_HEAD
from dsms.engine.runners import BatchRunner
from dsms.engine.runners.station_state import StationState
from dsms.engine.shedding import SHED, dependent_queries, exclusive_stations
from dsms.errors import PlanError
from dsms.operators import FunctionOperator
from dsms.plan.graph import SheddingRule


def table(way: str | None, ceiling: int = 3, **more: Any) -> dict[str, Any]:
    """Ten tuples come at once; `kept` takes all of them, `some` may have few of them wait."""
    shed = {} if way is None else {"shed": way, "ceiling": ceiling}
    return {
        "streams": {"s": {"arrivals": {"kind": "list", "at": [1.0] * 10}}},
        "queries": {
            "kept": {"from": "s", "operators": [{"name": "a", "cost": 1.0}]},
            "some": {"from": "s", "operators": [{"name": "b", "cost": 1.0}, {"name": "c", "cost": 1.0}], **shed},
        },
        **more,
    }


def make_state(*batches: Batch) -> StationState:
    found = StationState("f", FunctionOperator(cost=1.0), 1, (1.0,), 1.0, True)
    for number, each in enumerate(batches):
        found.put(0, each, float(number))
    return found


def rows(*values: int, **more: Any) -> Batch:
    return Batch.of({"x": np.array(values)}, **more)


def left(found: StationState) -> list[list[int]]:
    return [batch.columns["x"].tolist() if len(batch) else [] for batch, _ in found._queues[0]]


def test_what_is_at_some_places_of_a_queue_is_given_up() -> None:
    found = make_state(rows(1, 2, 3, seq=7), rows(4, 5, seq=8), rows(6, seq=9))
    assert found.shed(0, np.array([0, 1, 2, 4])) == (4, 32, 8)
    assert left(found) == [[4], [6]]


def test_all_of_a_queue_is_given_up() -> None:
    found = make_state(rows(1, 2, watermark=5), rows(3, watermark=9))
    assert found.shed(0, None) == (3, 24, NO_HEAD)
    assert left(found) == []


def test_time_is_told_by_what_is_behind_or_else_alone() -> None:
    found = make_state(rows(1, 2, watermark=5, seq=1), Batch(watermark=6, seq=2), rows(3, watermark=9, seq=3))
    assert found.shed(0, np.array([0, 1, 2, 3])) == (3, 24, 3)
    [(last, _)] = found._queues[0]
    assert (len(last), last.watermark) == (0, 9)
    assert found.shed(0, np.array([0])) == (0, 0, 3)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.data())
@DETERMINISTIC
def test_counts_and_bytes_are_of_what_is_gone(sizes: list[int], data: st.DataObject) -> None:
    batches = [rows(*range(n), watermark=9) if n else Batch(watermark=9) for n in sizes]
    units = sum(n or 1 for n in sizes)
    places = sorted(data.draw(st.sets(st.integers(0, units - 1))))
    found = make_state(*batches)
    count, size, _ = found.shed(0, np.array(places, dtype=int))
    assert sum(n for n, _ in found.contents(0)) == units - count
    assert sum(map(len, left(found))) * 8 + size == sum(sizes) * 8
    assert units - count >= max(1, units - len(places))


@pytest.mark.parametrize("way", ["oldest", "random"])
def test_a_query_gives_up_what_is_above_its_ceiling_and_others_do_not(way: str) -> None:
    run = dsms.simulate(table(way), "fifo")
    assert (run.queries["kept"].outputs, run.queries["some"].outputs) == (10, 3)
    assert (run.shed, run.queries["some"].shed, run.queries["kept"].shed) == (7, 7, 0)
    assert run.memory.tuples.max == 10


def test_the_oldest_are_given_up_or_any_by_chance_and_the_same_for_the_same_seed() -> None:
    def survivors(way: str, seed: int) -> list[int]:
        columns, found = {"x": np.arange(100)}, list[int]()
        plan = dsms.plan_from(
            {
                "streams": {"s": {"schema": {"x": "int64"}}},
                "queries": {"q": {"cql": "SELECT x FROM s", "shed": way, "ceiling": 10}},
                "run": {"seed": seed},
            }
        )
        engine = dsms.Engine(
            plan, dsms.policy_named("fifo"), sink=lambda _, rows: found.extend(rows.columns["x"].tolist())
        )
        engine.push("s", Batch.of(columns))
        engine.run()
        assert list(engine.runner.rejected_rows.items()) == [(("q.pass", SHED), 90)]
        assert engine.ledger.held == engine.ledger.held_bytes == 0
        return found

    assert survivors("oldest", 1) == list(range(90, 100))
    first = survivors("random", 1)
    assert first == survivors("random", 1)
    assert first != survivors("random", 2)
    assert len(first) == 10
    assert first == sorted(first)


@pytest.mark.parametrize("runner", [None, BatchRunner], ids=["tuples", "batches"])
@pytest.mark.parametrize("buffers", ["shared", "private"])
@pytest.mark.parametrize("policy", ["fifo", "chain", "rr-query", "fas-mcq", "mtiq", "qos-chain"])
def test_accounts_come_out_right_under_every_policy(policy: str, buffers: str, runner: Any) -> None:
    """More comes than can be worked off."""
    given = table("random", 4, run={"buffers": buffers})
    given["streams"]["s"]["arrivals"] = {"kind": "poisson", "rate": 2.0, "count": 200}
    engine = dsms.Engine(dsms.plan_from(given), dsms.policy_named(policy), runner=runner)
    while engine.step():
        assert engine.ledger.held >= max(queue.count for queue in engine.ledger.queues)
    shed = engine.runner.rejected_rows["b", SHED]
    assert 0 < shed < 200
    assert (engine.ledger.held, [queue.count for queue in engine.ledger.queues]) == (0, [0, 0, 0])
    run = dsms.simulate(given, policy, runner=runner)
    assert run.queries["some"].outputs == 200 - run.queries["some"].shed
    assert run.queries["kept"].outputs == 200


def test_without_a_word_nothing_is_given_up() -> None:
    run = dsms.simulate(table(None), "fifo")
    assert (run.shed, run.queries["some"].outputs) == (0, 10)


def test_rows_are_given_up_before_what_only_this_query_needs() -> None:
    plan = dsms.plan_from(
        {
            "streams": {"s": {"schema": {"x": "int64", "at": "timestamp"}, "timestamp": "at"}},
            "queries": {
                "p": {"cql": "SELECT x FROM s WHERE x > 1"},
                "q": {"cql": "SELECT x FROM s WHERE x > 2", "shed": "oldest", "ceiling": 5},
            },
        }
    )
    assert [station.name for station in exclusive_stations(plan, {"p"})] == ["p.select"]
    assert [station.name for station in exclusive_stations(plan, {"q"})] == ["q.select"]
    assert dependent_queries(plan, ["p.arrange"]) == ["p", "q"]


@pytest.mark.parametrize("hosts", [None, 2], ids=["inline", "two hosts"])
def test_a_live_query_gives_up_rows_and_says_how_many(hosts: int | None) -> None:
    few: dict[str, Any] = {"cql": "SELECT x FROM s WHERE x >= 0", "shed": "oldest", "ceiling": 10}
    queries = {"all": {"cql": "SELECT x FROM s"}, "few": few}
    results = ResultCollector()
    with domain_of({"streams": {"s": {"schema": {"x": "int64"}}}, "queries": queries}, results, hosts) as domain:
        domain.pause()
        for start in range(0, 100, 20):
            domain.admit([("s", batch(*range(start, start + 20)))])
        domain.resume()
        assert results.of("all", 100) == list(range(100))
        assert results.of("few", 10) == list(range(90, 100))
        status = settled(domain)
        assert {query.name: query.shed for query in status.queries} == {"all": 0, "few": 90}
        assert dict(domain.metrics())["dsms_shed_rows_total"] == [(("0", "all"), 0), (("0", "few"), 90)]
        assert (status.held, status.held_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"shed": "newest", "ceiling": 1}, "queries.some.shed: 'newest' is not a valid choice"),
        ({"shed": "oldest"}, "queries.some.ceiling: missing: `shed` and `ceiling` need each other"),
        ({"shed": "oldest", "ceiling": 0}, "queries.some.ceiling: 0 is not a whole number from 1"),
        ({"ceiling": 5}, "queries.some.shed: missing: `shed` and `ceiling` need each other"),
    ],
)
def test_what_cannot_be_shed_is_refused(query: dict[str, Any], said: str) -> None:
    given = table(None)
    given["queries"]["some"].update(query)
    with pytest.raises(PlanError, match=re.escape(said)):
        dsms.plan_from(given)


def test_a_query_that_others_need_all_of_cannot_shed() -> None:
    given = table("oldest")
    given["queries"]["more"] = {"from": "some.c", "operators": [{"name": "d", "cost": 1.0}]}
    with pytest.raises(PlanError, match=re.escape("'some' cannot shed: ['more'] read the results")):
        dsms.plan_from(given)


def test_fractional_tuples_cannot_be_shed() -> None:
    with pytest.raises(PlanError, match="fractional tuples cannot be shed"):
        dsms.plan_from(table("oldest", run={"tuples": "fractional"}))


def test_the_query_shown_in_the_guide_sheds() -> None:
    shown = block_with("toml", "[queries.trends]").text
    plan = dsms.plan_from({"streams": {"clicks": {"schema": {"page": "string"}}}, **tomllib.loads(shown)})
    assert plan.queries[0].shed == SheddingRule("random", 10_000)
