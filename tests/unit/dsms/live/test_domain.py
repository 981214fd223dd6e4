"""A running domain without a cluster: its thread, and calls that are carried out between two turns."""

from __future__ import annotations

import pickle
import threading
from functools import partial

import numpy as np
import pytest
from support.live.domains import (
    ALL,
    BROKEN,
    EVEN,
    JOIN,
    WAIT,
    PushedDomain,
    ResultCollector,
    asked,
    batch,
    domain_of,
    fleet_of,
    settled,
)

from actors.hosts.runner import ActorRunner
from actors.rpc.messages import get_result, send
from dsms.config.live import LiveConfig
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.errors import DsmsError, PlanError, PolicyError
from dsms.live.query_set import QuerySet


@pytest.fixture(autouse=True, params=[False, True], ids=["memory", "stored"])
def saves(request, monkeypatch):
    """Snapshots for checkpoints change nothing."""
    monkeypatch.setattr(PushedDomain, "saves", request.param)


@pytest.fixture(params=[None, 1, 3], ids=["inline", "one host", "three hosts"])
def hosts(request):
    return request.param


@pytest.mark.parametrize("policy", ["fifo", "chain", "rr-query", "fas-mcq"])
def test_rows_of_several_threads_come_out_once_and_each_threads_in_order(hosts, policy):
    results = ResultCollector()
    with domain_of(asked(all=ALL, even=EVEN), results, hosts, policy=policy) as domain:

        def push(first):
            for start in range(0, 100, 5):
                domain.admit([("s", batch(*range(first + start, first + start + 5)))])

        threads = [threading.Thread(target=push, args=(first,)) for first in (0, 1000, 2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = results.of("all", 300)
        even = results.of("even", 150)
    for first in (0, 1000, 2000):
        mine = [x for x in found if first <= x < first + 1000]
        assert mine == list(range(first, first + 100))
    assert even == [x for x in found if x % 2 == 0]


def test_swaps_change_no_result_and_each_is_recorded_with_its_reason_and_its_time(hosts):
    results, policies = ResultCollector(), ["chain", "rr", "fas-mcq", "adaptive", "partition-latency"]
    with domain_of(asked(all=ALL, even=EVEN, join=JOIN), results, hosts) as domain:
        for number in range(50):
            domain.admit([("s", batch(*range(4 * number, 4 * number + 4))), ("t", batch(4 * number))])
            if number % 5 == 0:
                told = domain.swap(policies[number // 5 % 5], f"reason {number}")
                assert (told["domain"], told["after"]) == ("0", policies[number // 5 % 5])
        assert results.of("all", 200) == list(range(200))
        assert results.of("even", 100) == list(range(0, 200, 2))
        assert results.of("join", 50) == list(range(0, 200, 4))
        status = settled(domain)
    assert status.swaps == 10
    assert [phase.reason for phase in status.phases] == ["first", *(f"reason {n}" for n in range(0, 50, 5))]
    assert all(phase.swap_seconds >= 0 for phase in status.phases)
    assert [phase.policy for phase in status.phases] == ["fifo", *policies, *policies]


def test_a_policy_that_is_refused_leaves_the_one_there_was_in_charge():
    results = ResultCollector()
    with domain_of(asked(all=ALL), results) as domain:
        with pytest.raises(PolicyError):
            domain.swap("nonsense", "asked for")
        with pytest.raises(PolicyError):
            domain.swap("mss", "asked for")
        domain.admit([("s", batch(1, 2))])
        assert results.of("all", 2) == [1, 2]
        status = domain.status()
    assert (status.policy, status.swaps, status.state) == ("fifo", 0, "running")


@pytest.mark.parametrize("policy", ["fifo", "rr-query"])
def test_an_operator_that_fails_fails_its_domain_which_still_answers(hosts, policy):
    results = ResultCollector()
    with domain_of(BROKEN, results, hosts, policy=policy) as domain:
        domain.admit([("s", batch(1, 2))])
        assert results.of("q", 2) == [1, 2]
        domain.admit([("s", batch(13))])
        status = settled(domain)
        assert status.state == "failed"
        assert status.error == "OperatorError: operator 'bad' raised ValueError: no such luck"
        for ask in (
            lambda: domain.admit([("s", batch(3))]),
            lambda: domain.add(asked(more=ALL)),
            lambda: domain.remove("q"),
            lambda: domain.release(["q"]),
        ):
            with pytest.raises(DsmsError, match=r"domain '0' has failed and accepts no calls: .* no such luck"):
                ask()
        with pytest.raises(DsmsError, match="is failed: only a running domain can become paused"):
            domain.pause()
        assert domain.status().state == "failed"


def test_a_paused_domain_takes_rows_in_and_gives_no_turns():
    results = ResultCollector()
    with domain_of(asked(all=ALL), results) as domain:
        domain.pause()
        domain.admit([("s", batch(1, 2, 3))])
        domain.admit([("s", batch(4))])
        status = domain.status()
        assert (status.state, status.held, status.turns) == ("paused", 4, 0)
        with pytest.raises(DsmsError, match="domain '0' is paused: only a running domain can become paused"):
            domain.pause()
        domain.resume()
        assert results.of("all", 4) == [1, 2, 3, 4]


def test_a_window_by_arrival_closes_while_nothing_comes(hosts):
    """Without new rows, the domain wakes up at the deadline."""
    text = "SELECT RSTREAM(count(*) AS x) FROM s [RANGE 50 MILLISECONDS SLIDE 50 MILLISECONDS]"
    results = ResultCollector()
    with domain_of(asked(counted=text), results, hosts) as domain:
        domain.admit([("s", batch(1, 2, 3))])
        assert results.of("counted", 1)[0] == 3


def test_what_was_asked_before_the_end_is_done_and_nothing_after():
    domain = PushedDomain("0", QuerySet(asked(all=ALL)), LiveConfig())
    begun, go = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go.wait(WAIT)

    domain.start()
    first = domain.ask(slow)
    begun.wait(WAIT)
    second = domain.ask(lambda: "done")
    closing = threading.Thread(target=domain.close)
    closing.start()
    while not domain._mailbox.closing:
        pass
    with pytest.raises(DsmsError, match="domain '0' is closed"):
        domain.status()
    go.set()
    closing.join(WAIT)
    assert not closing.is_alive()
    assert first.result(0) is None
    assert second.result(0) == "done"


def test_a_domain_that_is_busy_ends_after_the_present_turn():
    table = {**asked(all=ALL), "run": {"slice": 0.01}}
    with domain_of(table, ResultCollector()) as domain:
        for start in range(50):
            domain.admit([("s", Batch.of({"x": np.arange(start, start + 10_000)}))])
    with pytest.raises(DsmsError, match="closed"):
        domain.status()


def test_a_query_that_comes_begins_with_the_next_row_and_others_notice_nothing(hosts):
    results = ResultCollector()
    with domain_of(asked(all=ALL, join=JOIN), results, hosts) as domain:
        domain.admit([("s", batch(*range(10))), ("t", batch(*range(10)))])
        assert domain.add(asked(even=EVEN, sums="SELECT ISTREAM(sum(x) AS x) FROM s [ROWS 2]")) == ["even", "sums"]
        domain.admit([("s", batch(*range(10, 20))), ("t", batch(*range(10, 20)))])
        domain.remove("all")
        domain.admit([("s", batch(20, 21)), ("t", batch(20, 21))])
        assert results.of("even", 6) == list(range(10, 21, 2))
        assert results.of("join", 22) == list(range(22))
        assert results.of("sums", 2) == [18 + 19, 20 + 21]
        status = settled(domain)
        assert [query.name for query in status.queries] == ["join", "even", "sums"]
    left = results.of("all", 0)  # it went with what was queued for it
    assert left == list(range(len(left)))


def test_queries_that_cannot_come_or_go_change_nothing():
    results = ResultCollector()
    with domain_of(asked(all=ALL), results) as domain:
        for ask, message in (
            (lambda: domain.add(asked(all=ALL)), "there is a query 'all' already"),
            (lambda: domain.add(asked(bad="SELECT y FROM s")), "y"),
            (lambda: domain.remove("al"), "no query 'al' .did you mean 'all'"),
            (lambda: domain.release(["al"]), "no query 'al'"),
        ):
            with pytest.raises(PlanError, match=message):
                ask()
        domain.admit([("s", batch(1, 2))])
        assert results.of("all", 2) == [1, 2]


def test_a_query_that_comes_again_is_numbered_from_one(hosts):
    results = ResultCollector()
    with domain_of(asked(all=ALL), results, hosts or 2) as domain:
        for x in range(3):
            domain.admit([("s", batch(x))])
            results.of("all", x + 1)
        domain.remove("all")
        domain.add(asked(all=ALL))
        domain.admit([("s", batch(3))])
        assert results.of("all", 4) == [0, 1, 2, 3]
    assert results.numbers["all"] == [1, 2, 3, 1]


@pytest.mark.parametrize("paused", [False, True])
def test_queries_move_with_queues_and_state_and_their_results_go_on_with_their_numbers(paused):
    """Back and forth, with work queued or not; the one that stays behind has the same filter as one that moves."""
    results = ResultCollector()
    here = asked(even=EVEN, join=JOIN)
    there = asked(other=EVEN)
    with (
        domain_of(here, results, 2, name="a") as one,
        domain_of(there, results, 3, name="b") as two,
    ):
        places = [one, two]
        for number in range(6):
            source, target = places
            if paused:
                source.pause()
            for start in range(20 * number, 20 * number + 20, 5):
                source.admit([("s", batch(*range(start, start + 5))), ("t", batch(*range(start, start + 5)))])
            target.admit([("t", batch(-1))])
            for query in ("even", "join"):
                target.adopt(*pickle.loads(pickle.dumps(source.release([query]))))
            if paused:
                source.resume()
            assert {q.name for q in source.status().queries} <= {"other"}
            places.reverse()
        assert results.of("even", 60) == list(range(0, 120, 2))
        assert results.of("join", 120) == list(range(120))
    for query in ("even", "join"):
        assert results.numbers[query] == list(range(1, 1 + len(results.numbers[query])))


def test_rows_that_only_hosts_see_are_admitted_in_the_order_in_which_they_were_announced():
    results = ResultCollector()
    fleet = fleet_of(2, results, sockets=True)
    domain = PushedDomain("0", QuerySet(asked(all=ALL)), LiveConfig(), runner=partial(ActorRunner, host_pool=fleet))
    domain.saves = False  # with checkpoints, rows are at their hosts first
    domain.start()
    runner = domain.engine.runner
    assert isinstance(runner, ActorRunner)
    place = runner.places[domain.engine.plan.streams[0].consumers[0].name]
    domain.admit([("s", BatchRef("late", 2, 16.0)), ("s", BatchRef("early", 2, 16.0))])
    get_result(send(fleet.hosts[place].put, {"early": batch(3, 4)}))
    get_result(send(fleet.hosts[place].put, {"late": batch(1, 2)}))
    assert results.of("all", 4) == [1, 2, 3, 4]
    domain.close()


def test_weights_and_wishes_are_heard_between_turns():
    with domain_of(asked(all=ALL, even=EVEN), ResultCollector(), policy="fas-mcq") as domain:
        domain.weigh("even", 3.0)
        domain.require("memory=1")
        status = domain.status()
        assert {q.name: q.weight for q in status.queries} == {"all": 1.0, "even": 3.0}
        assert "memory" in status.qos
        with pytest.raises(DsmsError, match="no query 'odd'"):
            domain.weigh("odd", 1.0)
        with pytest.raises(DsmsError):
            domain.require("speed=lots")
