"""Rows that wait while a domain is full: in order, answered when they are in, and never for ever."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from test_domain import ALL, EVEN, WAIT, Results, asked, batch, domain_of, settled

from dsms.batch import Batch
from dsms.errors import DsmsError, PlanError
from dsms.live.gate import Gate, Limits
from dsms.live.machine import memory
from dsms.live.setup import Setup
from dsms.parcel import Parcel


class Room:
    """What is held of ten rows, and who came in."""

    def __init__(self, *streams: str) -> None:
        self.held, self.inside = 0, list[str]()
        self.gate = Gate(Limits(rows=10), self._admit)
        self.gate.expect(streams)

    def _admit(self, stream: str, rows: Batch | Parcel, push: bool) -> float:
        if stream == "wrong":
            raise DsmsError("no such stream")
        self.held += len(rows)
        self.inside.append(stream)
        return 0.0

    def open(self, idle: bool = False) -> bool:
        return self.gate.open(self.held / 10, idle)


def parcel(rows: int, latest: int | None = None) -> Parcel:
    return Parcel("key", rows, 8.0 * rows, latest)


def test_goods_are_let_in_in_order_until_it_is_full() -> None:
    room = Room()
    first = room.gate.come([("a", parcel(6)), ("b", parcel(6))])
    second = room.gate.come([("c", parcel(1)), ("d", parcel(1))])
    assert room.open()
    assert (room.inside, first.done(), second.done(), room.gate.busy) == (["a", "b"], True, False, True)
    assert room.gate.status()["waiting"] == 2


def test_what_was_full_opens_again_below_seven_eighths() -> None:
    room = Room()
    room.gate.come([("a", parcel(10)), ("b", parcel(1))])
    room.open()
    room.held = 9
    assert not room.open()
    room.held = 8
    assert room.open()
    assert room.inside == ["a", "b"]


def test_where_nothing_can_run_more_is_let_in_but_not_without_end() -> None:
    room = Room()
    room.gate.come([("a", parcel(1)) for _ in range(100)])
    room.open()
    while room.open(idle=True):
        pass
    assert (room.held, room.gate.stuck) == (13, True)


def test_where_nothing_can_run_the_stream_that_others_are_ahead_of_is_let_in_whatever_is_held() -> None:
    room = Room("bids", "asks")
    room.gate.come([("bids", parcel(20, latest=100))])
    room.open()
    answer = room.gate.come([("bids", parcel(5, latest=200)), ("asks", parcel(5, latest=50))])
    assert room.gate.behind() == ["asks"]
    assert room.open(idle=True)
    assert (room.inside, answer.done()) == (["bids", "asks"], False)
    assert not room.open(idle=True)
    assert room.gate.stuck


def test_a_stream_that_has_caught_up_waits_like_all_others() -> None:
    room = Room("bids", "asks")
    room.gate.come([("bids", parcel(20, latest=100)), ("asks", parcel(1, latest=100))])
    room.open()
    room.open(idle=True)
    room.gate.come([("asks", parcel(1, latest=200))])
    assert not room.open(idle=True)
    assert room.inside == ["bids", "asks"]


def test_what_is_wrong_with_some_goods_is_said_and_the_others_are_let_in() -> None:
    room = Room()
    wrong, right = room.gate.come([("wrong", parcel(1)), ("a", parcel(1))]), room.gate.come([("b", parcel(1))])
    room.open()
    assert isinstance(wrong.exception(), DsmsError)
    assert right.result() is None
    assert room.inside == ["a", "b"]


def test_goods_that_belong_together_are_let_in_at_once_by_a_job_of_theirs() -> None:
    room = Room()
    done = list[str]()
    room.gate.come([("a", parcel(10))])
    answer = room.gate.together([("b", parcel(3)), ("c", parcel(3))], lambda: done.append("both") or 7)
    failing = room.gate.together([("d", parcel(1))], lambda: 1 // 0)
    room.open()
    assert (room.inside, done, answer.done()) == (["a"], [], False)
    room.held = 0
    room.open()
    assert (room.inside, done, answer.result()) == (["a", "b", "c"], ["both"], 7)
    with pytest.raises(ZeroDivisionError):
        failing.result()


def test_those_that_wait_are_refused_with_the_reason() -> None:
    room = Room()
    room.gate.come([("a", parcel(10))])
    waiting = room.gate.come([("b", parcel(1))])
    room.open()
    room.gate.refuse(DsmsError("closed"))
    with pytest.raises(DsmsError, match="closed"):
        waiting.result()
    assert not room.gate.busy


@pytest.fixture(params=[None, 2], ids=["inline", "two hosts"])
def hosts(request: pytest.FixtureRequest) -> int | None:
    found: int | None = request.param
    return found


def test_a_full_domain_takes_nothing_in_until_it_has_worked_some_off(hosts: int | None) -> None:
    results = Results()
    with domain_of(asked(all=ALL, even=EVEN), results, hosts, most_rows=10) as domain:
        domain.pause()
        came = threading.Semaphore(0)

        def push() -> None:
            for start in range(0, 100, 5):
                domain.arrived([("s", batch(*range(start, start + 5)))])
                came.release()

        pushing = threading.Thread(target=push)
        pushing.start()
        assert came.acquire(timeout=WAIT)
        assert came.acquire(timeout=WAIT)
        assert not came.acquire(timeout=0.3)
        status = domain.status()
        assert status["held"] == 10
        assert status["ingest"]["paused"]
        assert dict(domain.metrics())["dsms_ingest_paused"] == [(("0",), 1.0)]
        domain.resume()
        assert results.of("all", 100) == list(range(100))
        pushing.join(WAIT)
        assert not pushing.is_alive()
        after = settled(domain)["ingest"]
    assert (after["paused"], after["limits"]) == (False, {"rows": 10, "bytes": after["limits"]["bytes"]})
    assert after["seconds"] > 0.3


def test_bytes_count_for_every_station_that_rows_wait_for() -> None:
    with domain_of(asked(all=ALL, even=EVEN), most_bytes=160) as domain:
        domain.pause()
        domain.arrived([("s", batch(*range(10)))])
        pushing = threading.Thread(target=domain.arrived, args=([("s", batch(1))],))
        pushing.start()
        pushing.join(0.3)
        assert pushing.is_alive()
        domain.resume()
        pushing.join(WAIT)
        assert not pushing.is_alive()


def test_operators_state_counts_and_what_may_free_it_is_still_let_in() -> None:
    """A join that waits for its other stream keeps all that came; with that stream it lets go of it."""
    streams = {name: {"schema": {"x": "int64", "at": "timestamp"}, "timestamp": "at"} for name in ("s", "t")}
    join = "SELECT ISTREAM(s.x) FROM s [NOW], t [NOW] WHERE s.x = t.x"
    results = Results()

    def rows(first: int) -> Batch:
        return Batch.of({"x": list(range(first, first + 10)), "at": list(range(first, first + 10))})

    with domain_of({"streams": streams, "queries": {"q": {"cql": join}}}, results, most_bytes=20_000) as domain:
        for start in range(0, 400, 10):
            domain.arrived([("s", rows(start))])
        waiting = threading.Thread(target=lambda: [domain.arrived([("s", rows(n))]) for n in range(400, 4000, 10)])
        waiting.start()
        while not domain.status()["ingest"]["paused"]:
            assert waiting.is_alive()
        domain.advance("t", 10_000)
        assert results.of("q", 0) == []
        waiting.join(WAIT)
        assert not waiting.is_alive()


def test_those_that_wait_are_told_when_the_domain_is_closed() -> None:
    refused = list[BaseException]()
    with domain_of(asked(all=ALL), most_rows=1) as domain:
        domain.pause()
        domain.arrived([("s", batch(1))])

        def push() -> None:
            try:
                domain.arrived([("s", batch(2))])
            except DsmsError as error:
                refused.append(error)

        pushing = threading.Thread(target=push)
        pushing.start()
        while not domain.status()["ingest"]["paused"]:
            pass
    pushing.join(WAIT)
    assert [str(error) for error in refused] == ["domain '0' is closed"]


def test_memory_is_the_machines_or_the_containers(tmp_path: Path) -> None:
    given, none = tmp_path / "given", tmp_path / "none"
    given.write_text("1048576\n")
    none.write_text("max\n")
    assert memory([given, none, tmp_path / "absent"]) == 1_048_576
    assert memory([none]) == memory([]) > 1_048_576


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"most_rows": 0}, "most_rows: 0 is not a whole number from 1"),
        ({"most_bytes": 1.5}, "most_bytes: 1.5 is not a whole number from 1"),
        ({"patience": 0}, "patience: 0 is not a positive number"),
    ],
)
def test_limits_that_are_none_are_refused(table: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Setup.read(table)
