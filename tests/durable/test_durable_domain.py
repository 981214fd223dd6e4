"""A domain that is saved between two turns and goes on elsewhere: as if nothing had been."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import EXACT

from actors.fleet import Fleet
from actors.frozen import Freezer, Frozen, thawed
from actors.host import Host
from actors.messages import pickled, unpickled
from actors.parts import wait_for
from actors.runner import ActorRunner
from dsms.batch import Batch
from dsms.errors import DsmsError
from dsms.live.delivery import Delivery
from dsms.live.durable_domain import DurableDomain
from dsms.live.roster import Roster
from dsms.live.setup import Setup

STREAM = {"schema": {"id": "int64", "k": "int64", "at": "int64"}, "timestamp": "at"}
TABLE = {
    "streams": {"a": STREAM, "b": STREAM},
    "queries": {
        "met": {"cql": "SELECT ISTREAM(a.id AS a, b.id AS b) FROM a [ROWS 9], b [ROWS 9] WHERE a.k = b.k"},
        "groups": {"cql": "SELECT k, count(*) AS n FROM a [RANGE 50 MICROSECONDS] GROUP BY k"},
        "left": {"cql": "SELECT id FROM a EXCEPT SELECT id FROM b"},
    },
}


class Taken:
    """An outlet that notes what it takes."""

    def __init__(self):
        self.results = {}

    def take(self, results):
        for query, number, batch in results:
            self.results[query, number] = batch

    def status(self):
        return {}

    def rows(self, upto):
        """By query: what is held in the end, by the results up to these numbers."""
        found = {query: Counter() for query in TABLE["queries"]}
        for (query, number), batch in sorted(self.results.items(), key=lambda item: item[0]):
            if number <= upto[query]:
                columns = zip(*(batch.columns[name].tolist() for name in batch.columns), strict=True)
                for sign, row in zip(batch.each("sign").tolist(), columns, strict=True):
                    found[query][row] += sign
        return {query: +rows for query, rows in found.items()}


@contextmanager
def domain_on(hosts, taken, roster=None, policy="fifo", **live):
    fleet, setup = Fleet(hosts, taken, lines=True), Setup(policy=policy, durable="d", **live)
    found = DurableDomain("0", roster or Roster(TABLE), setup, runner=partial(ActorRunner, fleet=fleet))
    found.start()
    try:
        yield found
    finally:
        found.close()


def delivery(after, count):
    """The next rows of both streams, as one entry of a log each."""
    contents = []
    for stream in "ab":
        ids = np.arange(after, after + count) * (1 if stream == "a" else 2)
        contents.append((stream, Batch.of({"id": ids, "k": ids % 3, "at": ids * 10})))
    return Delivery("g", after, after + count, contents)


def settled(domain):
    """All that came is worked off; by query, the number of its last results."""
    return domain.ask(lambda: (domain.engine.run(), dict(domain.engine.runner.results))[1]).result()


def saved(domain, hosts):
    """A snapshot as it is on disk."""
    snapshot, pause = domain.snapshot(lambda: domain.engine.runner.keep())
    assert pause >= 0
    parts = [Frozen.read({n: bytearray(d) for n, d in host.kept().sections("h").items()}, "h") for host in hosts]
    return pickled(snapshot), parts


def restored(domain, data):
    snapshot, parts = unpickled(data[0]), data[1]
    domain.restore(snapshot, {name: goods for part in parts for name, goods in thawed(part).items()})
    return snapshot


def once(counts):
    """The results of one domain that takes all of it in."""
    taken, at = Taken(), 0
    with domain_on([Host()], taken) as domain:
        for count in counts:
            domain.take_in(delivery(at, count))
            at += count
        domain.end()
        return taken.rows(settled(domain))


@settings(EXACT, max_examples=15)
@given(
    counts=st.lists(st.integers(1, 12), min_size=2, max_size=6),
    cut=st.integers(0, 5),
    lost=st.integers(0, 3),
    policy=st.sampled_from(["fifo", "chain", "rr", "mtiq"]),
)
def test_wherever_it_is_saved_and_however_much_is_done_and_lost_after_that_results_are_the_same(
    counts, cut, lost, policy
):
    cut = min(cut, len(counts))
    taken, at, hosts = Taken(), 0, [Host(), Host()]
    with domain_on(hosts, taken, policy=policy) as domain:
        for count in counts[:cut]:
            domain.take_in(delivery(at, count))
            at += count
        data = saved(domain, hosts)
        after = at
        for count in counts[cut : cut + lost]:  # what is made of these is never given out
            domain.take_in(delivery(after, count))
            after += count
        settled(domain)
    results = unpickled(data[0]).inventory.results
    covered = taken.rows({query: results.get(query, 0) for query in TABLE["queries"]})
    assert covered.keys() == TABLE["queries"].keys()
    taken.results = {key: batch for key, batch in taken.results.items() if key[1] <= results.get(key[0], 0)}
    hosts = [Host(), Host()]
    with domain_on(hosts, taken, Roster(TABLE, queries=[])) as domain:
        restored(domain, data)
        assert domain.position("g") == at
        assert domain.status()["policy"] == policy
        for count in counts[cut:]:
            domain.take_in(delivery(at, count))
            at += count
        domain.end()
        assert taken.rows(settled(domain)) == once(counts)
    numbers = sorted(taken.results)
    assert numbers == [
        (query, n)
        for query in sorted({q for q, _ in numbers})
        for n in range(1, 1 + sum(q == query for q, _ in numbers))
    ]


def test_weights_qos_the_policy_and_a_pause_are_gone_on_with():
    hosts = [Host()]
    with domain_on(hosts, Taken()) as domain:
        domain.swap("rr:tuples=30", "asked for")
        domain.weigh("met", 5.0)
        domain.require("memory=0.7,delay=0.3")
        domain.pause()
        data = saved(domain, hosts)
        before = domain.status()
    with domain_on([Host()], Taken(), Roster(TABLE, queries=[])) as domain:
        restored(domain, data)
        after = domain.status()
    assert after["state"] == "paused"
    assert after["policy"] == before["policy"] == "rr:tuples=30"
    assert after["qos"] == before["qos"]
    assert [query["weight"] for query in after["queries"]] == [5.0, 1.0, 1.0]


def test_a_delivery_that_does_not_follow_is_refused_and_changes_nothing():
    with domain_on([Host()], Taken()) as domain:
        domain.take_in(delivery(0, 3))
        for after in (0, 5):
            with pytest.raises(DsmsError, match=f"has the log of 'g' up to 3: what follows {after} does not fit"):
                domain.take_in(delivery(after, 3))
        assert (domain.position("g"), domain.position("other")) == (3, 0)
        assert [stream["rows"] for stream in domain.status()["streams"]] == [3, 3]


def test_a_delivery_that_waits_for_room_can_be_sent_back_and_come_again():
    with domain_on([Host()], Taken(), most_rows=4) as domain, ThreadPoolExecutor() as pool:
        domain.pause()
        domain.take_in(delivery(0, 3))
        waiting = pool.submit(domain.take_in, delivery(3, 3))
        assert wait_for(lambda: domain.status()["ingest"]["paused"], 30)
        domain.decline()
        with pytest.raises(DsmsError, match="domain '0' is full"):
            waiting.result()
        assert domain.position("g") == 3
        domain.resume()
        domain.take_in(delivery(3, 3))
        assert domain.position("g") == 6


def test_what_is_frozen_stays_as_it_was_and_is_writeable_again():
    value = {"numbers": np.arange(10), "words": np.array(["a", None], dtype=object), "plain": [1, 2]}
    kept = Freezer().frozen(value)
    value["numbers"][:] = 0
    value["plain"].append(3)
    again = thawed(Frozen.read({name: bytearray(data) for name, data in kept.sections("x").items()}, "x"))
    assert again["numbers"].tolist() == list(range(10))
    assert (again["words"].tolist(), again["plain"]) == (["a", None], [1, 2])
    again["numbers"][0] = 7


def test_what_nobody_can_write_to_is_not_copied():
    column = np.arange(10)
    column.flags.writeable = False
    assert np.shares_memory(Freezer().frozen(column).memory[0], column)


def test_memory_is_used_again_as_long_as_it_fits():
    freezer, value = Freezer(), [np.arange(1000), np.arange(3)]
    first = freezer.frozen(value).memory
    value[0] = np.arange(1100)
    again = freezer.frozen(value)
    assert np.shares_memory(again.memory[0], first[0])
    assert [part.tolist() for part in thawed(again)] == [list(range(1100)), [0, 1, 2]]
    value[0] = np.arange(9)
    assert not np.shares_memory(freezer.frozen(value).memory[0], first[0])
