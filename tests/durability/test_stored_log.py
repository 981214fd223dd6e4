"""A gateway with a log on disk stores rows before it acknowledges them, and delivers them from there to domains."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live.in_process_domain import FakeDomain, make_plan, make_routes, run_gateway

import dsms
from actors.deployment.actor_handles import wait_until
from actors.ingest.log_cache import LogCache
from actors.ingest.log_lag import LogLag
from dsms.errors import DsmsError
from dsms.net.access import AccessPolicy
from dsms.net.client.client import RefusedError

PLAN = make_plan({"s": {"n": "int64"}, "t": {"n": "int64"}}, all="SELECT n FROM s")
WAIT = 30.0


class LoggedDomain(FakeDomain):
    """A domain behind one gateway, at a position in its log; it may fail for a while."""

    def __init__(self, plan=PLAN, stands=0):
        super().__init__(plan)
        self.positions["g"] = stands

    @property
    def stands(self):
        return self.positions.get("g", 0)

    @stands.setter
    def stands(self, offset):
        self.positions["g"] = offset

    @property
    def ended(self):
        return "end" in self.calls

    def numbers(self, count):
        return [row["n"] for row in self.records("all", count)]


class FakeRemoteMethod:
    """A method called like an actor's: the caller does not wait."""

    def __init__(self, method, pool):
        self._method, self._pool = method, pool

    def options(self, concurrency_group):
        return self

    def remote(self, *given):
        self._called = self._pool.submit(self._method, *given)
        return self

    def future(self):
        return self._called


class FullDomain(LoggedDomain):
    """A domain without room for rows, until a test makes room."""

    def __init__(self, pool):
        super().__init__()
        self.full, self.waits, self.declined = True, threading.Event(), threading.Event()
        take_in: Any = FakeRemoteMethod(self._take_in, pool)
        self.apply_log_batch = take_in

    def _take_in(self, delivery):
        if self.full:
            self.waits.set()
            assert self.declined.wait(WAIT)
            raise DsmsError("it is full")
        return LoggedDomain.apply_log_batch(self, delivery)

    def reject_waiting(self):
        self.declined.set()


@contextmanager
def durable(folder, *domains, **terms):
    routes = make_routes(PLAN, *domains)
    with run_gateway(routes, durable=str(folder), terms=AccessPolicy(**terms)) as (gateway, address):
        yield gateway, address


def pushed(address, *numbers, producer="p"):
    with dsms.connect(address, producer=producer) as client:
        for number in numbers:
            client.push("s", {"n": [number]}, number=number)
        client.flush(WAIT)


def sent(client, numbers, count):
    """Push the same rows this often, or until the client is closed."""
    with suppress(DsmsError):
        for _ in range(count):
            client.push("s", {"n": numbers})


def test_rows_are_acknowledged_without_a_reader_and_delivered_when_there_is_one(tmp_path):
    domain = LoggedDomain()
    domain.error = "it is gone"
    with durable(tmp_path, domain) as (gateway, address):
        pushed(address, 1, 2, 3)
        assert wait_until(lambda: gateway.status()["log"]["error"] == "it is gone", WAIT)
        domain.error = None
        assert domain.numbers(3) == [1, 2, 3]
        stands = {"offset": 3, "behind": 0, "bytes": 0, "full": False, "error": None}
        assert wait_until(lambda: gateway.status()["log"] == stands, WAIT)


def test_a_new_process_continues_at_the_domains_position_and_knows_every_producer(tmp_path):
    with durable(tmp_path, LoggedDomain()) as (_, address):
        pushed(address, 1, 2, 3)
    domain = LoggedDomain(stands=1)
    with durable(tmp_path, domain) as (_, address):
        pushed(address, 3, 4)  # 3 came before
        assert domain.numbers(3) == [2, 3, 4]


def test_a_domain_that_reads_no_stream_advances_in_the_log_too(tmp_path):
    idle = LoggedDomain(make_plan({"t": {"n": "int64"}}, all="SELECT n FROM t"))
    routes = make_routes(PLAN, domain := LoggedDomain())
    with run_gateway(replace(routes, schedulers=(domain, idle)), durable=str(tmp_path)) as (_, address):
        pushed(address, 1, 2)
        assert wait_until(lambda: idle.stands == 2, WAIT)
        assert idle.records("all") == []


def test_held_rows_are_stored_and_delivered_by_the_next_routes_from_one_offset_on(tmp_path):
    first, second = LoggedDomain(), LoggedDomain()
    with durable(tmp_path, first) as (gateway, address):
        pushed(address, 1, 2)
        first.numbers(2)
        gateway.hold(["s"])
        assert first.stands == 2
        pushed(address, 3, producer="q")
        second.stands = first.stands
        gateway.serve(make_routes(PLAN, second))
        assert (second.numbers(1), first.numbers(2)) == ([3], [1, 2])


def test_hold_waits_for_a_full_domain_only_where_all_must_have_the_same_rows(tmp_path):
    pool = ThreadPoolExecutor()
    full, other = FullDomain(pool), LoggedDomain()
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
        gateway.serve(make_routes(PLAN, full, other))
        assert full.numbers(4) == other.numbers(4) == [1, 2, 3, 4]


def test_truncated_entries_are_not_delivered_and_a_log_shorter_than_a_domains_position_is_refused(tmp_path):
    with durable(tmp_path / "one", domain := LoggedDomain()) as (gateway, address):
        pushed(address, 1, 2, 3)
        domain.numbers(3)
        gateway.truncate(2)
        pushed(address, 4, producer="q")
        assert domain.numbers(4) == [1, 2, 3, 4]
    with durable(tmp_path / "other", domain) as (gateway, _):
        assert wait_until(lambda: gateway.status()["log"]["error"] is not None, WAIT)
        assert "not the log that belongs to this checkpoint" in gateway.status()["log"]["error"]


def test_an_end_is_stored_too_and_a_new_process_refuses_later_rows(tmp_path):
    with (
        durable(tmp_path, domain := LoggedDomain()) as (_, address),
        dsms.connect(address, producer="p") as client,
    ):
        client.push("s", {"n": [1]})
        client.end("s")
        client.end("t")
        client.flush(WAIT)
        assert wait_until(lambda: domain.ended, WAIT)
    late = LoggedDomain()
    with durable(tmp_path, late) as (_, address):
        assert wait_until(lambda: late.ended, WAIT)
        client = dsms.connect(address, producer="q")
        client.push("s", {"n": [2]})
        with pytest.raises(RefusedError, match="after its end"):
            client.flush(WAIT)
    assert late.numbers(1) == [1]


def test_a_refused_frame_may_be_sent_again_under_its_number_to_a_new_process(tmp_path):
    nulls = {"n": np.array([1]), "at": np.array([0])}
    plan = dsms.plan_from({
        "streams": {"s": {"schema": {"n": "int64", "at": "timestamp"}, "timestamp": "at"}},
        "queries": {"all": {"cql": "SELECT n FROM s"}},
    })  # fmt: skip
    for bad in (True, False):
        routes = make_routes(plan, domain := LoggedDomain(plan))
        with run_gateway(routes, durable=str(tmp_path)) as (_, address):
            client = dsms.connect(address, producer="p")
            client.push("s", {**nulls, "at": np.array([2**62])} if bad else nulls, number=7)
            if bad:
                with pytest.raises(RefusedError, match="out of range"):
                    client.flush(WAIT)
            else:
                client.flush(WAIT)
                assert domain.numbers(1) == [1]
                client.close()


def test_no_client_is_read_while_a_domain_is_too_far_behind_also_by_a_new_process(tmp_path):
    frame, most = np.arange(1000), 100_000  # of 8,000 bytes
    domain = LoggedDomain()
    domain.error = "it is gone"
    with durable(tmp_path, domain, stored=most) as (gateway, address):
        client = dsms.connect(address, producer="p", patience=1.0)
        sending = threading.Thread(target=sent, args=(client, frame, 400), daemon=True)
        sending.start()
        assert wait_until(lambda: gateway.status()["log"]["full"], WAIT)
        assert not wait_until(lambda: gateway.status()["log"]["offset"] == 400, 0.5)
        assert dict(gateway.metrics())["dsms_ingest_stopped"] == [(("g",), 1.0)]
        [(_, behind)] = dict(gateway.metrics())["dsms_log_behind_bytes"]
        assert behind > most
        with pytest.raises(DsmsError, match="not acknowledged"):
            client.close(0.1)
        sending.join(WAIT)
        stored = gateway.status()["log"]["offset"]
    with durable(tmp_path, domain, stored=most) as (gateway, address):
        assert gateway.status()["log"]["full"]
        domain.error = None
        assert wait_until(lambda: domain.stands == stored, WAIT)
        with dsms.connect(address, producer="q") as client:
            client.push("s", {"n": frame})
            client.flush(WAIT)
        assert wait_until(lambda: not gateway.status()["log"]["full"], WAIT)
        assert dict(gateway.metrics())["dsms_ingest_stopped"] == [(("g",), 0.0)]


def test_no_client_is_read_while_no_checkpoint_can_be_saved(tmp_path):
    domain = LoggedDomain()
    with durable(tmp_path, domain) as (gateway, address):
        pushed(address, 1)
        gateway.stop_ingest(True)
        assert wait_until(lambda: gateway.status()["log"]["full"], WAIT)
        client = dsms.connect(address, producer="q")
        client.push("s", {"n": [2]})
        with pytest.raises(DsmsError, match="not acknowledged"):
            client.flush(0.3)
        assert domain.numbers(1) == [1]
        gateway.stop_ingest(False)
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
def test_the_log_lag_is_exact_to_a_grain_and_never_too_small(sizes, at, gone, grain):
    arrears = LogLag(enumerate(sizes, 1), grain)
    arrears.truncate(min(at, gone))
    exact = sum(sizes[at:])
    assert exact <= arrears.after(at) < exact + grain + max(sizes, default=0)
    assert arrears.after(len(sizes)) == 0


def test_entries_outside_the_cache_are_read_from_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("actors.ingest.stored_log.LogCache", partial(LogCache, size=100))
    domain = LoggedDomain()
    domain.error = "it is gone"
    with durable(tmp_path, domain) as (_, address):
        pushed(address, *range(1, 40))
        domain.error = None
        assert domain.numbers(39) == list(range(1, 40))
