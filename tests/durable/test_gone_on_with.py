"""What a domain has learnt and counted, and who rests: all of it is there again once it was rebuilt."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_durable_domain import TABLE, Taken, delivery, domain_on, restored, saved, settled
from test_quarantine import Moody

from actors.host import Host
from actors.messages import unpickled
from actors.succession import succession
from dsms.batch import Batch
from dsms.live.delivery import Delivery
from dsms.live.domain import measured
from dsms.live.quarantine import FAILURES
from dsms.live.roster import Roster
from dsms.live.setup import Setup

LIVE = measured(TABLE, Setup())
SCORED = "adaptive:select=best,candidates=fifo+chain+rr,every=0.02,period=0.01,warmup=0,explore=0.01"


def worked(policy="fifo", table=LIVE, deliveries=30):
    """A domain's snapshot after some work under a policy, and what was to be seen of it then."""
    hosts = [Host()]
    with domain_on(hosts, Taken(), Roster(table), policy) as domain:
        for place in range(deliveries):
            domain.take_in(delivery(10 * place, 10))
            settled(domain)
        domain.pause()
        return saved(domain, hosts), seen(domain)


def seen(domain):
    """How it stands, and what it says of itself for a checkpoint."""
    return domain.snapshot(lambda: domain.engine.runner.keep()).snapshot, domain.status(), domain.metrics()


def rebuilt(data, table=LIVE):
    with domain_on([Host()], Taken(), Roster(table, queries=[])) as domain:
        restored(domain, data)
        return seen(domain)


def figures(count):
    return count.consumed, count.produced, count.busy, count.since


@pytest.mark.parametrize("select", ["best", "roulette", "predictive"])
def test_scores_and_who_decides_are_those_there_were(select):
    data, (_, before, metrics) = worked(SCORED.replace("best", select))
    was = unpickled(data[0]).learnt
    snapshot, status, told = rebuilt(data)
    learnt = snapshot.learnt
    assert select == "predictive" or set(was.scores.now.values()) != {0.5}  # something was learnt
    assert learnt.scores.now == was.scores.now
    assert (learnt.active, learnt.why, learnt.agenda, learnt.kept) == (was.active, was.why, was.agenda, was.kept)
    assert repr(learnt.heuristic) == repr(was.heuristic)
    assert [(name, of["queued"].total.tolist()) for name, of in learnt.views.items()] == [
        (name, of["queued"].total.tolist()) for name, of in was.views.items()
    ]
    assert (status["policy"], status["decides"]) == (before["policy"], before["decides"])
    assert told["dsms_selector_score"] == metrics["dsms_selector_score"]
    assert told["dsms_selector_active"] == metrics["dsms_selector_active"]


def test_an_adaptive_policy_with_requirements_of_its_own_goes_on():
    data, (_, before, _) = worked(f"{SCORED},qos=memory=0.7+delay=0.3", deliveries=1)
    _, status, _ = rebuilt(data)
    assert (status["policy"], status["qos"]) == (before["policy"], "memory=0.7,delay=0.3")


def test_scores_of_other_candidates_are_not_taken_over():
    data, _ = worked(SCORED)
    with domain_on([Host()], Taken(), Roster(LIVE), "adaptive:candidates=fifo+mtiq") as domain:
        policy = domain.engine.chosen
        domain.ask(lambda: policy.recall(unpickled(data[0]).learnt)).result()
        assert policy.selector.scores == {"fifo": 0.5, "mtiq": 0.5}


def test_a_round_goes_on_where_it_was():
    data, _ = worked("rr", deliveries=7)
    snapshot, _, _ = rebuilt(data)
    assert snapshot.learnt == unpickled(data[0]).learnt > 0


@pytest.mark.parametrize("kind", ["average", "window"])
def test_all_that_was_measured_is_known_and_the_next_run_does_not_count_for_more_than_others(kind):
    table = {**LIVE, "run": {**LIVE["run"], "statistics": kind, "window": 1000.0}}
    data, _ = worked(table=table)
    was = unpickled(data[0])
    hosts = [Host()]
    with domain_on(hosts, Taken(), Roster(table, queries=[])) as domain:
        restored(domain, data)
        snapshot, _, _ = seen(domain)
        now = snapshot.statistics
        assert now.rates == was.statistics.rates
        assert (now.arrived, now.ends) == (was.statistics.arrived, was.statistics.ends)
        for counts, before in ((now.totals, was.statistics.totals), (now.window, was.statistics.window)):
            assert {name: figures(c) for name, c in counts.items()} == {name: figures(c) for name, c in before.items()}
        assert any(count.consumed for count in now.totals.values())
        known = {name: (e.cost, e.selectivity) for name, e in was.inventory.estimates.items()}
        after = domain.engine.statistics.known(known)
        assert {name: (e.cost, e.selectivity) for name, e in after.items()} == known
        supposed = {name for name, estimate in was.inventory.estimates.items() if estimate.supposed}
        assert {name for name, estimate in after.items() if estimate.supposed} == supposed
        if kind == "average":
            assert supposed == set()


def test_results_rows_turns_and_phases_are_counted_on():
    data, (_, before, metrics) = worked("chain")
    _, status, told = rebuilt(data)
    counted = ("dsms_result_rows_total", "dsms_stream_rows_total", "dsms_scheduler_decisions_total")
    for name in (*counted, "dsms_tuple_latency_seconds", "dsms_policy_switches_total"):
        assert told[name] == metrics[name]
    assert sum(rows for _, rows in told["dsms_result_rows_total"]) > 0
    assert [(p["policy"], p["turns"], p["results"]) for p in status["phases"]] == [
        (p["policy"], p["turns"], p["results"]) for p in before["phases"]
    ]
    assert [(stream["name"], stream["rows"]) for stream in status["streams"]] == [("a", 300), ("b", 300)]


FAILING = {"streams": {"a": {"schema": {"n": "int64"}}}, "run": {"on_error": "dead-letter"}}


def failing(moody, name="ill"):
    ill = {"from": "a", "operators": [{"name": name, "function": moody}]}
    return {**FAILING, "queries": {"well": {"cql": "SELECT n FROM a"}, "ill": ill}}


def brought(domain, first, count):
    """Rows one by one."""
    for place in range(first, first + count):
        domain.take_in(Delivery("g", place, place + 1, [("a", Batch.of({"n": np.array([place])}))]))
        settled(domain)


def quarantined(table):
    hosts = [Host()]
    with domain_on(hosts, Taken(), Roster(table)) as domain:
        brought(domain, 0, FAILURES + 5)
        assert [one["query"] for one in domain.status()["quarantine"]] == ["ill"]
        return saved(domain, hosts), domain.status()


def test_whoever_rested_rests_until_it_is_released_and_what_was_given_up_is_counted_on():
    table = failing(Moody())
    data, before = quarantined(table)
    taken = Taken()
    with domain_on([Host()], taken, Roster(table, queries=[])) as domain:
        restored(domain, data)
        after = domain.status()
        assert after["quarantine"] == before["quarantine"]
        assert after["asides"] == before["asides"]
        assert [query["shed"] for query in after["queries"]] == [0, 5]
        brought(domain, FAILURES + 5, 3)
        assert [query["shed"] for query in domain.status()["queries"]] == [0, 8]
        assert domain.readmit("ill") == ["ill"]
        brought(domain, FAILURES + 8, 1)
        assert domain.status()["quarantine"] == []
        assert domain.status()["asides"][0]["rows"] == before["asides"][0]["rows"] + 1
    assert len([query for query, _ in taken.results if query == "well"]) == 4


def test_state_that_was_in_doubt_stays_so_and_is_not_kept_when_it_is_released():
    table = failing(Moody())
    hosts = [Host()]
    with domain_on(hosts, Taken(), Roster(table)) as domain:
        domain.engine.runner.barren["ill"] = math.inf
        domain.bar("ill", "it was half-way")
        data = saved(domain, hosts)
    with domain_on([Host()], Taken(), Roster(table, queries=[])) as domain:
        restored(domain, data)
        assert domain.engine.runner.barren == {"ill": math.inf}
        domain.readmit("ill")
        assert domain.engine.runner.barren == {}


def test_one_whose_operator_is_another_in_a_plan_that_has_changed_may_try_again():
    data, _ = quarantined(failing(Moody()))
    snapshot = unpickled(data[0])
    same, other = Roster(failing(Moody())), Roster(failing(Moody(), "mended"))
    staying = succession(snapshot.roster.plan, same.plan).keeping
    assert snapshot.fitted(same, staying).resting.reasons.keys() == {"ill"}
    staying = succession(snapshot.roster.plan, other.plan).keeping
    assert snapshot.fitted(other, staying).resting == ({}, {})
