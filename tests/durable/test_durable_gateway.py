"""A gateway that stores what comes before it acknowledges it: over real TCP, to a domain that is an engine here."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_parts import Domain, plan_of, routes_of, serving

import dsms
from actors.arrears import Arrears
from actors.parts import wait_for
from actors.tail import Tail
from dsms.client.client import RefusedError
from dsms.errors import DsmsError
from dsms.live.terms import Terms

PLAN = plan_of({"s": {"n": "int64"}, "t": {"n": "int64"}}, all="SELECT n FROM s")
WAIT = 30.0


class Standing(Domain):
    """A domain that knows how much of a log it has; it may be out of order for a while."""

    def __init__(self, plan=PLAN, stands=0):
        super().__init__(plan)
        self.stands, self.working, self.ended = stands, True, False

    def position(self, gateway):
        if not self.working:
            raise DsmsError("it is gone")
        return self.stands

    def take_in(self, delivery):
        if not self.working or delivery.after != self.stands:
            raise DsmsError(f"it stands at {self.stands}, not at {delivery.after}")
        self.arrived([(stream, parcel) for stream, parcel in delivery.contents if not isinstance(parcel, int)])
        self.stands, self.ended = delivery.upto, self.ended or delivery.ends

    def decline(self):
        """Nothing waits here."""

    def numbers(self, count):
        wait_for(lambda: len(self.records("all")) >= count, WAIT)
        return [row["n"] for row in self.records("all")]


class Aside:
    """A method that is called as an actor's is: whoever calls it is not kept waiting."""

    def __init__(self, method, pool):
        self._method, self._pool = method, pool

    def options(self, concurrency_group):
        return self

    def remote(self, *given):
        self._called = self._pool.submit(self._method, *given)
        return self

    def future(self):
        return self._called


class Full(Standing):
    """A domain that has no room for what is brought, until somebody says so."""

    def __init__(self, pool):
        super().__init__()
        self.full, self.waits, self.declined = True, threading.Event(), threading.Event()
        self.take_in = Aside(self._take_in, pool)

    def _take_in(self, delivery):
        if self.full:
            self.waits.set()
            assert self.declined.wait(WAIT)
            raise DsmsError("it is full")
        Standing.take_in(self, delivery)

    def decline(self):
        self.declined.set()


@contextmanager
def durable(folder, *domains, **terms):
    routes = replace(routes_of(PLAN, *domains), schedulers=domains)
    with serving(routes, durable=str(folder), terms=Terms(**terms)) as (gateway, address):
        yield gateway, address


def pushed(address, *numbers, producer="p"):
    with dsms.connect(address, producer=producer) as client:
        for number in numbers:
            client.push("s", {"n": [number]}, number=number)
        client.flush(WAIT)


def sent(client, numbers, count):
    """The same rows so often, or until the client is closed."""
    with suppress(DsmsError):
        for _ in range(count):
            client.push("s", {"n": numbers})


def test_rows_are_acknowledged_though_nobody_takes_them_in_and_brought_when_somebody_does(tmp_path):
    domain = Standing()
    domain.working = False
    with durable(tmp_path, domain) as (gateway, address):
        pushed(address, 1, 2, 3)
        assert wait_for(lambda: gateway.status()["log"]["error"] == "it is gone", WAIT)
        domain.working = True
        assert domain.numbers(3) == [1, 2, 3]
        stands = {"offset": 3, "behind": 0, "bytes": 0, "full": False, "error": None}
        assert wait_for(lambda: gateway.status()["log"] == stands, WAIT)


def test_another_process_goes_on_where_a_domain_stands_and_knows_every_producer(tmp_path):
    with durable(tmp_path, Standing()) as (_, address):
        pushed(address, 1, 2, 3)
    domain = Standing(stands=1)
    with durable(tmp_path, domain) as (_, address):
        pushed(address, 3, 4)  # 3 came before
        assert domain.numbers(3) == [2, 3, 4]


def test_a_domain_that_reads_nothing_of_it_gets_on_in_the_log_too(tmp_path):
    idle = Standing(plan_of({"t": {"n": "int64"}}, all="SELECT n FROM t"))
    routes = routes_of(PLAN, domain := Standing())
    with serving(replace(routes, schedulers=(domain, idle)), durable=str(tmp_path)) as (_, address):
        pushed(address, 1, 2)
        assert wait_for(lambda: idle.stands == 2, WAIT)
        assert idle.records("all") == []


def test_what_is_held_is_stored_and_brought_by_the_next_ways_from_one_offset_on(tmp_path):
    first, second = Standing(), Standing()
    with durable(tmp_path, first) as (gateway, address):
        pushed(address, 1, 2)
        first.numbers(2)
        gateway.hold(["s"])
        assert first.stands == 2
        pushed(address, 3, producer="q")
        second.stands = first.stands
        gateway.serve(replace(routes_of(PLAN, second), schedulers=(second,)))
        assert (second.numbers(1), first.numbers(2)) == ([3], [1, 2])


def test_nobody_waits_for_a_domain_that_is_full_to_take_in_what_is_stored_unless_all_must_have_the_same(tmp_path):
    pool = ThreadPoolExecutor()
    full, other = Full(pool), Standing()
    with pool, durable(tmp_path, full, other) as (gateway, address):
        pushed(address, 1, 2, 3)
        assert other.numbers(3) == [1, 2, 3]
        assert full.waits.wait(WAIT)
        gateway.hold(["s"], False)
        assert full.declined.is_set()
        assert (full.stands, other.stands) == (0, 3)
        pushed(address, 4, producer="q")
        assert other.stands == 3
        full.full = False
        gateway.hold(["s"], True)
        assert full.stands == other.stands == 3
        gateway.serve(replace(routes_of(PLAN, full, other), schedulers=(full, other)))
        assert full.numbers(4) == other.numbers(4) == [1, 2, 3, 4]


def test_what_is_forgotten_is_not_brought_again_and_a_log_that_lacks_what_a_domain_has_is_refused(tmp_path):
    with durable(tmp_path / "one", domain := Standing()) as (gateway, address):
        pushed(address, 1, 2, 3)
        domain.numbers(3)
        gateway.forget(2)
        pushed(address, 4, producer="q")
        assert domain.numbers(4) == [1, 2, 3, 4]
    with durable(tmp_path / "other", domain) as (gateway, _):
        assert wait_for(lambda: gateway.status()["log"]["error"] is not None, WAIT)
        assert "not the log that belongs to this checkpoint" in gateway.status()["log"]["error"]


def test_an_end_is_stored_too_and_rows_after_it_are_refused_by_another_process(tmp_path):
    with durable(tmp_path, domain := Standing()) as (_, address), dsms.connect(address, producer="p") as client:
        client.push("s", {"n": [1]})
        client.end("s")
        client.end("t")
        client.flush(WAIT)
        assert wait_for(lambda: domain.ended, WAIT)
    late = Standing()
    with durable(tmp_path, late) as (_, address):
        assert wait_for(lambda: late.ended, WAIT)
        client = dsms.connect(address, producer="q")
        client.push("s", {"n": [2]})
        with pytest.raises(RefusedError, match="after its end"):
            client.flush(WAIT)
    assert late.numbers(1) == [1]


def test_a_frame_that_was_refused_may_come_again_under_its_number_at_another_process(tmp_path):
    nulls = {"n": np.array([1]), "at": np.array([0])}
    plan = dsms.plan_from({
        "streams": {"s": {"schema": {"n": "int64", "at": "timestamp"}, "timestamp": "at"}},
        "queries": {"all": {"cql": "SELECT n FROM s"}},
    })  # fmt: skip
    for bad in (True, False):
        routes = replace(routes_of(plan, domain := Standing(plan)), schedulers=(domain,))
        with serving(routes, durable=str(tmp_path)) as (_, address):
            client = dsms.connect(address, producer="p")
            client.push("s", {**nulls, "at": np.array([2**62])} if bad else nulls, number=7)
            if bad:
                with pytest.raises(RefusedError, match="out of range"):
                    client.flush(WAIT)
            else:
                client.flush(WAIT)
                assert domain.numbers(1) == [1]
                client.close()


def test_nobody_is_read_while_too_much_is_stored_that_a_domain_has_no_room_for_also_by_another_process(tmp_path):
    frame, most = np.arange(1000), 100_000  # of 8,000 bytes
    domain = Standing()
    domain.working = False
    with durable(tmp_path, domain, stored=most) as (gateway, address):
        client = dsms.connect(address, producer="p", patience=1.0)
        sending = threading.Thread(target=sent, args=(client, frame, 400), daemon=True)
        sending.start()
        assert wait_for(lambda: gateway.status()["log"]["full"], WAIT)
        assert not wait_for(lambda: gateway.status()["log"]["offset"] == 400, 0.5)
        assert dict(gateway.metrics())["dsms_ingest_stopped"] == [(("g",), 1.0)]
        [(_, behind)] = dict(gateway.metrics())["dsms_log_behind_bytes"]
        assert behind > most
        with pytest.raises(DsmsError, match="not acknowledged"):
            client.close(0.1)
        sending.join(WAIT)
        stored = gateway.status()["log"]["offset"]
    with durable(tmp_path, domain, stored=most) as (gateway, address):
        assert gateway.status()["log"]["full"]
        domain.working = True
        assert wait_for(lambda: domain.stands == stored, WAIT)
        with dsms.connect(address, producer="q") as client:
            client.push("s", {"n": frame})
            client.flush(WAIT)
        assert wait_for(lambda: not gateway.status()["log"]["full"], WAIT)
        assert dict(gateway.metrics())["dsms_ingest_stopped"] == [(("g",), 0.0)]


def test_nobody_is_read_while_no_checkpoint_can_be_saved(tmp_path):
    domain = Standing()
    with durable(tmp_path, domain) as (gateway, address):
        pushed(address, 1)
        gateway.brake(True)
        assert wait_for(lambda: gateway.status()["log"]["full"], WAIT)
        client = dsms.connect(address, producer="q")
        client.push("s", {"n": [2]})
        with pytest.raises(DsmsError, match="not acknowledged"):
            client.flush(0.3)
        assert domain.numbers(1) == [1]
        gateway.brake(False)
        client.flush(WAIT)
        client.close()
        assert domain.numbers(2) == [1, 2]
        assert not gateway.status()["log"]["full"]


@given(
    sizes=st.lists(st.integers(1, 300), max_size=40),
    at=st.integers(0, 45),
    gone=st.integers(0, 45),
    grain=st.integers(1, 500),
)
def test_arrears_are_what_is_behind_a_place_or_up_to_a_grain_more(sizes, at, gone, grain):
    arrears = Arrears(enumerate(sizes, 1), grain)
    arrears.forget(min(at, gone))
    exact = sum(sizes[at:])
    assert exact <= arrears.after(at) < exact + grain + max(sizes, default=0)
    assert arrears.after(len(sizes)) == 0


def test_a_tail_that_is_too_short_is_made_up_for_from_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("actors.durable_intake.Tail", partial(Tail, size=100))
    domain = Standing()
    domain.working = False
    with durable(tmp_path, domain) as (_, address):
        pushed(address, *range(1, 40))
        domain.working = True
        assert domain.numbers(39) == list(range(1, 40))
