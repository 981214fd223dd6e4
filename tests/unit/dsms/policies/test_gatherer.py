"""What was seen of operators, queries and the plan: by algorithm, in all, and now."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
from support.strategies import make_path_plan

import dsms
from dsms.engine.engine import Engine
from dsms.engine.runners import BatchRunner
from dsms.errors import DsmsError
from dsms.plan.graph import Station
from dsms.policies.adaptive.gatherer import Gatherer, Statistic, format_policy
from dsms.policies.adaptive.statistic_views import StatisticsView
from dsms.policies.registry import policy_named

TWO = ({"cost": 0.5, "selectivity": 0.5}, {"cost": 1.0})


def gathered(plan: dsms.Plan, policy: str = "fifo", **options: Any) -> tuple[Engine, Gatherer]:
    gatherer = Gatherer(plan, **options)
    engine = Engine(plan, policy_named(policy), observers=[gatherer])
    engine.run()
    return engine, gatherer


def value(found: Any) -> Any:
    """The latest value, or None."""
    return None if found is None else found.latest


def test_a_view_keeps_the_weighted_average_the_mean_and_the_ends() -> None:
    """Raindrop's eq. 3.1, w = 0.875: what was 8 is 9 after a 16."""
    view = StatisticsView({"operator": ["a", "b"]}, {"operator": ["cost"]}, 0.875)
    for a, b in ((8.0, math.nan), (16.0, 2.0)):
        view.add("operator", "cost", np.array([a, b]))
    found = view.summary("cost", "a")
    assert found is not None
    assert (found.average, found.mean, found.minimum, found.maximum) == (9, 12, 8, 16)
    assert (found.count, found.latest, found.total) == (2, 16, 24)
    assert view.table() == {"a": {"cost": found}, "b": {"cost": view.summary("cost", "b")}}
    assert view.highest("cost") == "a"
    assert view.lowest("cost") == "b"
    assert (view.minimum("cost"), view.maximum("cost")) == (2, 16)
    assert view.highest("cost", by="minimum") == "a"


def test_a_view_says_what_it_has() -> None:
    view = StatisticsView({"operator": ["a"], "plan": ["plan"]}, {"operator": ["cost"]}, 0.5)
    assert view.summary("cost", "a") is view.highest("cost") is view.minimum("cost") is None
    for ask, message in (
        (lambda: view.summary("cots", "a"), r"no operator statistic 'cots' \(did you mean 'cost'\?\)"),
        (lambda: view.summary("cost", "x"), r"no operator 'x'; there are \['a'\]"),
        (lambda: view.highest("cost", "stream"), r"no kind of object 'stream'; there are \['operator', 'plan'\]"),
        (lambda: view.highest("cost", by="median"), r"no figure 'median' of a statistic"),
    ):
        with pytest.raises(DsmsError, match=message):
            ask()


def test_a_period_says_what_operators_queries_and_the_plan_did() -> None:
    """fifo: a 0-0.5 (passes nothing), a 0.5-1 (passes), b 1-2; two more wait from 1.5 on; a tick every 2 units."""
    plan = make_path_plan(*TWO, at=[0, 0, 1.5, 1.5], selectivity="spread")
    engine = Engine(plan, policy_named("fifo"), observers=[gatherer := Gatherer(plan, period=2.0)])
    while engine.clock.now() < 2:
        engine.step()
    view = gatherer.view("fifo")
    figures = {name: {key: s.latest for key, s in mine.items()} for name, mine in view.table().items()}
    assert figures["a"] == {
        "input": 2, "taken": 2, "output": 1, "time": 1, "selectivity": 0.5, "output_rate": 1, "cost": 0.5,
        "throughput": 1, "queued": 2,
    }  # fmt: skip
    assert figures["b"] == {
        "input": 1, "taken": 1, "output": 1, "time": 1, "selectivity": 1, "output_rate": 1, "cost": 1,
        "throughput": 1, "queued": 0,
    }  # fmt: skip
    held = 2 * 0.5 + 1 * 1.5 + 2 * 0.5  # the first two, then one of them, then two more
    wanted = {"throughput": 1, "output_rate": 0.5, "queued": held / 2, "delay": 2, "age": held / 4}
    assert {key: value(view.plan(key)) for key in wanted} == pytest.approx(wanted)
    query = {key: s.latest for key, s in view.table("query")["q"].items()}
    assert query == {"throughput": 1, "output_rate": 0.5, "queued": 2, "delay": 2}


def test_what_there_was_none_of_has_no_value() -> None:
    """Nothing passes: no delay, and b has no cost; but it has put out nothing, and that is known."""
    plan = make_path_plan({"cost": 1, "selectivity": 0}, {"cost": 1}, at=[0])
    _, gatherer = gathered(plan)
    view = gatherer.historic
    assert view.plan("delay") is view.summary("cost", "b") is view.summary("selectivity", "b") is None
    assert value(view.plan("output_rate")) == value(view.summary("output", "b")) == 0


def test_every_value_of_a_view_goes_into_the_historic_one_too() -> None:
    plan = make_path_plan(*TWO, at=np.arange(0, 20, 0.7).tolist(), selectivity="spread")
    gatherer = Gatherer(plan)
    engine = Engine(plan, policy_named("fifo"), observers=[gatherer])
    for text in ("greedy", "mtiq:ratio=0.5,threshold=2", "fifo"):
        for _ in range(8):
            engine.step()
        engine.swap(policy_named(text))
    engine.run()
    assert list(gatherer.views) == ["fifo", "greedy", "mtiq:ratio=0.5,threshold=2"]
    for statistic in ("queued", "output_rate", "throughput"):
        mine = [found for view in gatherer.views.values() if (found := view.plan(statistic)) is not None]
        all_ = gatherer.historic.plan(statistic)
        assert all_ is not None
        assert all_.count == sum(found.count for found in mine) > 3
        assert all_.total == pytest.approx(sum(found.total for found in mine))
        assert all_.maximum == max(found.maximum for found in mine)
        assert all_.minimum == min(found.minimum for found in mine)
    with pytest.raises(
        DsmsError, match=r"no statistics of policy 'rr': it has not run; there are \['fifo', 'greedy', 'mtiq:"
    ):
        gatherer.view("rr")


def test_less_than_half_a_period_counts_for_nobody() -> None:
    """One result in a hundredth of a time unit is no rate of a hundred."""
    plan = make_path_plan({"cost": 0.25}, at=[0] * 20)
    gatherer = Gatherer(plan)
    engine = Engine(plan, policy_named("fifo"), observers=[gatherer])
    for _ in range(5):
        engine.step()
    engine.swap(policy_named("greedy"))
    assert value(gatherer.view("fifo").summary("output", "a")) == 4
    for _ in range(3):
        engine.step()
    engine.swap(policy_named("mtiq"))
    assert value(gatherer.view("greedy").summary("output", "a")) == 3


def test_a_silence_ends_with_the_next_turn() -> None:
    """The tick at 1 is due while nothing happens; it comes when the tuple of 100 is done."""
    _, gatherer = gathered(make_path_plan({"cost": 0.5}, at=[0, 100, 100, 100]))
    found = gatherer.historic.plan("throughput")
    assert found is not None
    assert (found.count, found.total, found.maximum) == (2, 4, 2)


def test_the_present_state_is_that_of_this_instant() -> None:
    plan = make_path_plan({"cost": 1}, {"cost": 1}, at=[0, 0, 0])
    gatherer = Gatherer(plan)
    engine = Engine(plan, policy_named("mtiq"), observers=[gatherer])
    engine.step()
    engine.step()
    assert gatherer.generic.highest("queued") == "b"
    assert gatherer.generic.table()["b"]["queued"].latest == 2
    assert value(gatherer.generic.plan("queued")) == value(gatherer.generic.plan("bytes")) == 3
    engine.step()
    assert gatherer.generic.highest("priority") in ("a", "b")


def test_the_operator_with_the_highest_priority_the_lowest_cost_the_highest_rate_and_the_fullest_queue() -> None:
    plan = make_path_plan({"cost": 0.25, "selectivity": 0.5}, {"cost": 0.5}, at=np.arange(0, 8, 0.25).tolist())
    gatherer = Gatherer(plan)
    engine = Engine(plan, policy_named("greedy"), observers=[gatherer])
    while engine.clock.now() < 3:
        engine.step()
    assert gatherer.generic.highest("priority") == "a"  # 0.5/0.25 and 1/0.5: equal, the first is named
    assert gatherer.historic.lowest("cost") == "a"
    assert gatherer.historic.highest("cost") == "b"
    assert gatherer.historic.highest("output_rate") in ("a", "b")
    assert gatherer.historic.maximum("queued") == max(
        gatherer.historic.table()[name]["queued"].maximum for name in ("a", "b")
    )


def test_an_operator_of_two_inputs_could_have_put_out_their_product() -> None:
    table = {
        "streams": {name: {"arrivals": {"kind": "list", "at": [0] * count}} for name, count in (("s", 3), ("t", 2))},
        "queries": {"q": {"operators": [{"name": "u", "cost": 1, "inputs": ["s", "t"]}]}},
    }
    _, gatherer = gathered(dsms.plan_from(table), period=5.0)
    found = {key: s.latest for key, s in gatherer.historic.table()["u"].items()}
    assert (found["input"], found["taken"], found["output"]) == (6, 5, 5)
    assert (found["selectivity"], found["cost"]) == (pytest.approx(5 / 6), 1)


@pytest.mark.parametrize("runner", [None, BatchRunner])
def test_fractions_and_batches_are_gathered_alike(runner: Any) -> None:
    plan = make_path_plan(*TWO, at=[0, 0, 0, 0], tuples="fractional")
    gatherer = Gatherer(plan)
    engine = Engine(plan, policy_named("fifo"), runner=runner, observers=[gatherer])
    engine.run()
    found = gatherer.historic.plan("throughput")
    assert found is not None
    assert found.total == pytest.approx(2.0)  # half of each of four tuples
    assert value(gatherer.historic.summary("selectivity", "a")) == pytest.approx(0.5)


def test_a_gatherer_that_comes_late_counts_from_then_on() -> None:
    plan = make_path_plan({"cost": 0.5}, at=[0] * 8)
    engine = Engine(plan, policy_named("fifo"))
    for _ in range(4):
        engine.step()
    engine.watch(gatherer := Gatherer(plan))
    engine.run()
    found = gatherer.historic.plan("throughput")
    assert found is not None
    assert (found.count, found.total) == (2, 4)
    gatherer.forget()
    assert gatherer.views == {}
    assert gatherer.historic.plan("throughput") is None


def test_statistics_of_ones_own_are_gathered_always_or_once_a_period() -> None:
    asked = []

    def waiting(engine: Engine, station: Station) -> float:
        asked.append(station.name)
        return float(engine.ledger.inputs[station.index][0].count)

    own = [
        Statistic("waiting", "operator", waiting, always=True),
        Statistic("weight", "query", lambda engine, query: query.weight),
        Statistic("admitted", "plan", lambda engine: engine.admitted or None),
        Statistic("ran", "query", lambda engine, query: 1.0, always=True),
        Statistic("turns", "plan", lambda engine: 1.0, always=True),
    ]
    plan = make_path_plan({"cost": 0.5}, {"cost": 0.5}, at=[0, 0])
    _, gatherer = gathered(plan, statistics=own)
    assert asked == ["a", "b", "a", "b"]  # after every turn, of what ran in it
    view = gatherer.view("fifo")
    for found in (view.summary("waiting", "a"), view.summary("weight", "q", "query"), view.plan("admitted")):
        assert found is not None
        assert found.count == 2
    assert view.plan("turns") == gatherer.historic.plan("turns")
    totals = [found and found.total for found in (view.plan("turns"), view.summary("ran", "q", "query"))]
    assert totals == [4, 4]
    assert "admitted" in gatherer.statistics()


def test_a_statistic_of_ones_own_that_fails_is_dropped_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    broken = Statistic("broken", "plan", lambda engine: 1 / 0)
    with caplog.at_level(logging.ERROR, "dsms"):
        engine, gatherer = gathered(make_path_plan({"cost": 1}, at=[0, 0, 0]), statistics=[broken])
    assert engine.clock.now() == 3
    assert [record.getMessage() for record in caplog.records] == [
        "statistic 'broken' failed and is not gathered any more"
    ]
    assert gatherer.historic.plan("broken") is None


def test_statistics_of_ones_own_have_names_of_their_own() -> None:
    with pytest.raises(DsmsError, match="plan statistic 'delay' exists already"):
        Statistic("delay", "plan", lambda engine: 1.0)
    with pytest.raises(
        DsmsError, match=r"statistic 'x' of kind 'stream': no such kind; there are \['operator', 'plan'"
    ):
        Statistic("x", "stream", lambda engine: 1.0)
    gatherer = Gatherer(make_path_plan({"cost": 1}, at=[0]), statistics=[Statistic("x", "plan", lambda engine: 1.0)])
    with pytest.raises(DsmsError, match="plan statistic 'x' exists already: define it once"):
        gatherer.define(Statistic("x", "plan", lambda engine: 1.0))


def test_what_is_measured_does_not_depend_on_who_gathers() -> None:
    plan = make_path_plan(*TWO, at=np.arange(0, 30, 0.9).tolist())
    assert dsms.simulate(plan, "mtiq", observers=[Gatherer(plan)]).memory.tuples.integral == pytest.approx(
        dsms.simulate(plan, "mtiq").memory.tuples.integral
    )


@pytest.mark.parametrize("text", ["fifo", "mtiq:ratio=0.3,threshold=50", "rr:time=0.25"])
def test_a_policy_is_called_what_people_would_type(text: str) -> None:
    assert format_policy(policy_named(text)) == text
