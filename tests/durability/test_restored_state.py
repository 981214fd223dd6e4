"""A rebuilt domain has its statistics, counters and quarantined queries again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.live.domains import Moody
from support.live.restored_domains import TABLE, NumberedResults, delivery, domain_on, restored, saved, settled

from actors.checkpoints.plan_diff import diff_plans
from actors.hosts.host import Host
from actors.rpc.messages import deserialize
from dsms.config.live import LiveConfig, apply_live_defaults
from dsms.data.batch import Batch
from dsms.live.log_batch import LogBatch, LogItem
from dsms.live.quarantine import FAILURE_LIMIT_BATCHES
from dsms.live.query_set import QuerySet

LIVE = apply_live_defaults(TABLE, LiveConfig())
SCORED = "adaptive:select=best,candidates=fifo+chain+rr,every=0.02,period=0.01,warmup=0,explore=0.01"


def worked(policy="fifo", table=LIVE, deliveries=30):
    """A domain's snapshot after some work under a policy, and its status then."""
    hosts = [Host()]
    with domain_on(hosts, NumberedResults(), QuerySet(table), policy) as domain:
        for place in range(deliveries):
            domain.apply_log_batch(delivery(10 * place, 10)).result()
            settled(domain)
        domain.pause()
        return saved(domain, hosts), seen(domain)


def seen(domain):
    """Its status, and its snapshot for a checkpoint."""
    return domain.snapshot(lambda: domain.engine.runner.copy_state()).snapshot, domain.status(), domain.metrics()


def rebuilt(data, table=LIVE):
    with domain_on([Host()], NumberedResults(), QuerySet(table, queries=[])) as domain:
        restored(domain, data)
        return seen(domain)


def figures(count):
    return count.consumed, count.produced, count.busy, count.since


@pytest.mark.parametrize("select", ["best", "roulette", "predictive"])
def test_scores_and_the_chosen_policy_are_restored(select):
    data, (_, before, metrics) = worked(SCORED.replace("best", select))
    was = deserialize(data[0]).policy_state
    snapshot, status, told = rebuilt(data)
    policy_state = snapshot.policy_state
    assert select == "predictive" or set(was.scores.now.values()) != {0.5}  # the scores have changed
    assert policy_state.scores.now == was.scores.now
    assert (policy_state.active, policy_state.why, policy_state.agenda, policy_state.kept) == (
        was.active,
        was.why,
        was.agenda,
        was.kept,
    )
    assert repr(policy_state.heuristic) == repr(was.heuristic)
    assert [(name, of["queued"].total.tolist()) for name, of in policy_state.views.items()] == [
        (name, of["queued"].total.tolist()) for name, of in was.views.items()
    ]
    assert (status.policy, status.decides) == (before.policy, before.decides)
    assert told["dsms_selector_score"] == metrics["dsms_selector_score"]
    assert told["dsms_selector_active"] == metrics["dsms_selector_active"]


def test_an_adaptive_policy_with_its_own_requirements_is_restored():
    data, (_, before, _) = worked(f"{SCORED},qos=memory=0.7+delay=0.3", deliveries=1)
    _, status, _ = rebuilt(data)
    assert (status.policy, status.qos) == (before.policy, "memory=0.7,delay=0.3")


def test_scores_of_other_candidates_are_not_restored():
    data, _ = worked(SCORED)
    with domain_on([Host()], NumberedResults(), QuerySet(LIVE), "adaptive:candidates=fifo+mtiq") as domain:
        policy = domain.engine.control.chosen
        domain.ask(lambda: policy.restore(deserialize(data[0]).policy_state)).result()
        assert policy.selector.scores == {"fifo": 0.5, "mtiq": 0.5}


def test_a_round_continues_where_it_was():
    data, _ = worked("rr", deliveries=7)
    snapshot, _, _ = rebuilt(data)
    assert snapshot.policy_state == deserialize(data[0]).policy_state > 0


@pytest.mark.parametrize("kind", ["average", "window"])
def test_measurements_are_restored_and_the_next_run_weighs_no_more_than_others(kind):
    table = {**LIVE, "run": {**LIVE["run"], "statistics": kind, "window": 1000.0}}
    data, _ = worked(table=table)
    was = deserialize(data[0])
    hosts = [Host()]
    with domain_on(hosts, NumberedResults(), QuerySet(table, queries=[])) as domain:
        restored(domain, data)
        snapshot, _, _ = seen(domain)
        now = snapshot.statistics
        assert now.rates == was.statistics.rates
        assert (now.arrived, now.ends) == (was.statistics.arrived, was.statistics.ends)
        for counts, before in ((now.totals, was.statistics.totals), (now.window, was.statistics.window)):
            assert {name: figures(c) for name, c in counts.items()} == {name: figures(c) for name, c in before.items()}
        assert any(count.consumed for count in now.totals.values())
        known = {name: (e.cost, e.selectivity) for name, e in was.transfer.estimates.items()}
        after = domain.engine.statistics.known(known)
        assert {name: (e.cost, e.selectivity) for name, e in after.items()} == known
        is_assumed = {name for name, estimate in was.transfer.estimates.items() if estimate.is_assumed}
        assert {name for name, estimate in after.items() if estimate.is_assumed} == is_assumed
        if kind == "average":
            assert is_assumed == set()


def test_counts_of_results_rows_turns_and_phases_continue():
    data, (_, before, metrics) = worked("chain")
    _, status, told = rebuilt(data)
    counted = ("dsms_result_rows_total", "dsms_stream_rows_total", "dsms_scheduler_decisions_total")
    for name in (*counted, "dsms_tuple_latency_seconds", "dsms_policy_switches_total"):
        assert told[name] == metrics[name]
    assert sum(rows for _, rows in told["dsms_result_rows_total"]) > 0
    assert [(p.policy, p.turns, p.results) for p in status.phases] == [
        (p.policy, p.turns, p.results) for p in before.phases
    ]
    assert [(stream.name, stream.rows) for stream in status.streams] == [("a", 300), ("b", 300)]


FAILING = {"streams": {"a": {"schema": {"n": "int64"}}}, "run": {"on_error": "dead-letter"}}


def failing(moody, name="ill"):
    ill = {"from": "a", "operators": [{"name": name, "function": moody}]}
    return {**FAILING, "queries": {"well": {"cql": "SELECT n FROM a"}, "ill": ill}}


def brought(domain, first, count):
    """Rows one by one."""
    for place in range(first, first + count):
        domain.apply_log_batch(
            LogBatch("g", place, place + 1, [LogItem(place + 1, "a", Batch.of({"n": np.array([place])}))])
        ).result()
        settled(domain)


def quarantined(table):
    hosts = [Host()]
    with domain_on(hosts, NumberedResults(), QuerySet(table)) as domain:
        brought(domain, 0, FAILURE_LIMIT_BATCHES + 5)
        assert [one.query for one in domain.status().quarantine] == ["ill"]
        return saved(domain, hosts), domain.status()


def test_a_quarantined_query_stays_so_until_it_is_lifted_and_counts_continue():
    table = failing(Moody())
    data, before = quarantined(table)
    taken = NumberedResults()
    with domain_on([Host()], taken, QuerySet(table, queries=[])) as domain:
        restored(domain, data)
        after = domain.status()
        assert after.quarantine == before.quarantine
        assert after.rejected == before.rejected
        assert [query.shed for query in after.queries] == [0, 5]
        brought(domain, FAILURE_LIMIT_BATCHES + 5, 3)
        assert [query.shed for query in domain.status().queries] == [0, 8]
        assert domain.lift("ill") == ["ill"]
        brought(domain, FAILURE_LIMIT_BATCHES + 8, 1)
        assert domain.status().quarantine == []
        assert domain.status().rejected[0].rows == before.rejected[0].rows + 1
    assert len([query for query, _ in taken.results if query == "well"]) == 4


def test_doubtful_state_stays_so_and_is_dropped_when_the_quarantine_is_lifted():
    table = failing(Moody())
    hosts = [Host()]
    with domain_on(hosts, NumberedResults(), QuerySet(table)) as domain:
        domain.engine.runner.consecutive_failures["ill"] = math.inf
        domain.quarantine("ill", "it was half-way")
        data = saved(domain, hosts)
    with domain_on([Host()], NumberedResults(), QuerySet(table, queries=[])) as domain:
        restored(domain, data)
        assert domain.engine.runner.consecutive_failures == {"ill": math.inf}
        domain.lift("ill")
        assert domain.engine.runner.consecutive_failures == {}


def test_a_quarantined_query_whose_operator_has_changed_runs_again():
    data, _ = quarantined(failing(Moody()))
    snapshot = deserialize(data[0])
    same, other = QuerySet(failing(Moody())), QuerySet(failing(Moody(), "mended"))
    staying = diff_plans(snapshot.query_set.plan, same.plan).kept_stations
    assert snapshot.migrate(same, staying).quarantine.reasons.keys() == {"ill"}
    staying = diff_plans(snapshot.query_set.plan, other.plan).kept_stations
    assert snapshot.migrate(other, staying).quarantine == ({}, {})
