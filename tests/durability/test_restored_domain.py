"""A domain restored from a snapshot gives the same results as one that was never interrupted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.live.restored_domains import TABLE, NumberedResults, delivery, domain_on, end, restored, saved, settled
from support.strategies import DETERMINISTIC

from actors.deployment.actor_handles import wait_until
from actors.hosts.host import Host
from actors.hosts.state_copy import StateCopier, StateCopy, load_state_copy
from actors.rpc.messages import deserialize
from dsms.errors import DsmsError
from dsms.live.query_set import QuerySet


def once(counts):
    """The results of one uninterrupted domain."""
    taken, at = NumberedResults(), 0
    with domain_on([Host()], taken) as domain:
        for count in counts:
            domain.apply_log_batch(delivery(at, count)).result()
            at += count
        domain.apply_log_batch(end(at)).result()
        return taken.rows(settled(domain))


@settings(DETERMINISTIC, max_examples=15)
@given(
    counts=st.lists(st.integers(1, 12), min_size=2, max_size=6),
    cut=st.integers(0, 5),
    lost=st.integers(0, 3),
    policy=st.sampled_from(["fifo", "chain", "rr", "mtiq"]),
)
def test_results_are_the_same_wherever_the_domain_is_saved_and_however_much_work_is_lost(counts, cut, lost, policy):
    cut = min(cut, len(counts))
    taken, at, hosts = NumberedResults(), 0, [Host(), Host()]
    with domain_on(hosts, taken, policy=policy) as domain:
        for count in counts[:cut]:
            domain.apply_log_batch(delivery(at, count)).result()
            at += count
        data = saved(domain, hosts)
        after = at
        for count in counts[cut : cut + lost]:  # their results are never released
            domain.apply_log_batch(delivery(after, count)).result()
            after += count
        settled(domain)
    results = deserialize(data[0]).transfer.results
    covered = taken.rows({query: results.get(query, 0) for query in TABLE["queries"]})
    assert covered.keys() == TABLE["queries"].keys()
    taken.results = {key: batch for key, batch in taken.results.items() if key[1] <= results.get(key[0], 0)}
    hosts = [Host(), Host()]
    with domain_on(hosts, taken, QuerySet(TABLE, queries=[])) as domain:
        restored(domain, data)
        assert domain.position("g") == 2 * at
        assert domain.status().policy == policy
        for count in counts[cut:]:
            domain.apply_log_batch(delivery(at, count)).result()
            at += count
        domain.apply_log_batch(end(at)).result()
        assert taken.rows(settled(domain)) == once(counts)
    numbers = sorted(taken.results)
    assert numbers == [
        (query, n)
        for query in sorted({q for q, _ in numbers})
        for n in range(1, 1 + sum(q == query for q, _ in numbers))
    ]


def test_weights_qos_policy_and_pause_are_restored():
    hosts = [Host()]
    with domain_on(hosts, NumberedResults()) as domain:
        domain.swap("rr:tuples=30", "asked for")
        domain.weigh("met", 5.0)
        domain.require("memory=0.7,delay=0.3")
        domain.pause()
        data = saved(domain, hosts)
        before = domain.status()
    with domain_on([Host()], NumberedResults(), QuerySet(TABLE, queries=[])) as domain:
        restored(domain, data)
        after = domain.status()
    assert after.state == "paused"
    assert after.policy == before.policy == "rr:tuples=30"
    assert after.qos == before.qos
    assert [query.weight for query in after.queries] == [5.0, 1.0, 1.0]


def test_a_log_batch_at_another_offset_is_refused_and_changes_nothing():
    with domain_on([Host()], NumberedResults()) as domain:
        domain.apply_log_batch(delivery(0, 3)).result()
        for after in (0, 5):
            with pytest.raises(DsmsError, match=f"log of 'g' up to 6: a batch after {2 * after} does not follow"):
                domain.apply_log_batch(delivery(after, 3)).result()
        assert (domain.position("g"), domain.position("other")) == (6, 0)
        assert [stream.rows for stream in domain.status().streams] == [3, 3]


def test_of_a_log_batch_that_is_rejected_while_it_waits_for_room_the_rest_can_be_sent_again():
    with domain_on([Host()], NumberedResults(), most_rows=4) as domain:
        domain.pause()
        domain.apply_log_batch(delivery(0, 3)).result()
        waiting = domain.apply_log_batch(delivery(3, 3))
        assert wait_until(lambda: domain.status().ingest.paused, 30)
        domain.reject_waiting()
        with pytest.raises(DsmsError, match="domain '0' is full"):
            waiting.result()
        assert domain.position("g") == 6
        domain.resume()
        domain.apply_log_batch(delivery(3, 3)).result()
        assert domain.position("g") == 12


def test_a_snapshot_in_the_middle_of_a_log_batch_has_the_items_before_it_and_the_rest_follows():
    hosts, taken = [Host()], NumberedResults()
    with domain_on(hosts, NumberedResults(), most_rows=2) as domain:
        domain.pause()
        waiting = domain.apply_log_batch(delivery(0, 3))
        assert wait_until(lambda: domain.position("g") == 3, 30)  # of stream a, not of stream b
        data = saved(domain, hosts)
        domain.reject_waiting()
        assert isinstance(waiting.exception(), DsmsError)
    with domain_on([Host()], taken, QuerySet(TABLE, queries=[])) as domain:
        restored(domain, data)
        domain.resume()
        domain.apply_log_batch(delivery(0, 3)._replace(after_offset=3, items=delivery(0, 3).items[1:])).result()
        domain.apply_log_batch(end(3)).result()
        assert taken.rows(settled(domain)) == once([3])


def test_a_state_copy_does_not_change_and_loads_as_writeable():
    value: dict[str, Any] = {"numbers": np.arange(10), "words": np.array(["a", None], dtype=object), "plain": [1, 2]}
    kept = StateCopier().copy(value)
    value["numbers"][:] = 0
    value["plain"].append(3)
    again = load_state_copy(StateCopy.read({name: bytearray(data) for name, data in kept.sections("x").items()}, "x"))
    assert again["numbers"].tolist() == list(range(10))
    assert (again["words"].tolist(), again["plain"]) == (["a", None], [1, 2])
    again["numbers"][0] = 7


def test_read_only_memory_is_not_copied():
    column = np.arange(10)
    column.flags.writeable = False
    assert np.shares_memory(StateCopier().copy(column).memory[0], column)


def test_memory_is_reused_while_it_fits():
    copier, value = StateCopier(), [np.arange(1000), np.arange(3)]
    first = copier.copy(value).memory
    value[0] = np.arange(1100)
    again = copier.copy(value)
    assert np.shares_memory(again.memory[0], first[0])
    assert [part.tolist() for part in load_state_copy(again)] == [list(range(1100)), [0, 1, 2]]
    value[0] = np.arange(9)
    assert not np.shares_memory(copier.copy(value).memory[0], first[0])
