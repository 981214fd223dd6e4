"""Rows wait while a domain is full: they are admitted in order, acknowledged then, and never wait for ever."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest
from support.live.domains import ALL, EVEN, WAIT, ResultCollector, asked, batch, domain_of, settled

from dsms.config.live import LiveConfig
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.errors import DsmsError, PlanError
from dsms.live.admission import AdmissionQueue, AdmissionStep
from dsms.live.memory_limit import MemoryLimits, read_memory_bytes
from dsms.live.monitor.status import LimitStatus


class Room:
    """A domain with room for ten rows, and the streams of the admitted ones."""

    def __init__(self, *streams: str) -> None:
        self.held, self.inside = 0, list[str]()
        self.gate = AdmissionQueue(MemoryLimits(rows=10), lambda stream, rows: 0.0)
        self.gate.set_timestamped_streams(streams)

    def enqueue(self, *arrivals: tuple[str, BatchRef | None]) -> Future[None]:
        return self.gate.enqueue(AdmissionStep(partial(self._admit, *each), *each) for each in arrivals)

    def _admit(self, stream: str, rows: BatchRef | None) -> None:
        if stream == "wrong":
            raise DsmsError("no such stream")
        self.held += 0 if rows is None else len(rows)
        self.inside.append(stream)

    def admit_waiting(self, idle: bool = False) -> bool:
        return self.gate.admit_waiting(self.held / 10, idle)


def rows_of(rows: int, latest: int | None = None) -> BatchRef:
    return BatchRef("key", rows, 8.0 * rows, latest)


def test_rows_are_admitted_in_order_until_the_domain_is_full() -> None:
    room = Room()
    first = room.enqueue(("a", rows_of(6)), ("b", rows_of(6)))
    second = room.enqueue(("c", rows_of(1)), ("d", rows_of(1)))
    assert room.admit_waiting()
    assert (room.inside, first.done(), second.done(), room.gate.has_waiting) == (["a", "b"], True, False, True)
    assert room.gate.status().waiting == 2


def test_a_full_domain_admits_rows_again_below_seven_eighths() -> None:
    room = Room()
    room.enqueue(("a", rows_of(10)), ("b", rows_of(1)))
    room.admit_waiting()
    room.held = 9
    assert not room.admit_waiting()
    room.held = 8
    assert room.admit_waiting()
    assert room.inside == ["a", "b"]


def test_while_nothing_can_run_more_rows_are_admitted_up_to_a_limit() -> None:
    room = Room()
    room.enqueue(*(("a", rows_of(1)) for _ in range(100)))
    room.admit_waiting()
    while room.admit_waiting(idle=True):
        pass
    assert (room.held, room.gate.is_stuck) == (13, True)


def test_while_nothing_can_run_the_lagging_stream_is_admitted_above_the_limit() -> None:
    room = Room("bids", "asks")
    room.enqueue(("bids", rows_of(20, latest=100)))
    room.admit_waiting()
    answer = room.enqueue(("bids", rows_of(5, latest=200)), ("asks", rows_of(5, latest=50)))
    assert room.gate.lagging_streams() == ["asks"]
    assert room.admit_waiting(idle=True)
    assert (room.inside, answer.done()) == (["bids", "bids", "asks"], True)  # a request keeps its order
    assert not room.gate.has_waiting


def test_a_stream_that_has_caught_up_waits_like_all_others() -> None:
    room = Room("bids", "asks")
    room.enqueue(("bids", rows_of(20, latest=100)), ("asks", rows_of(1, latest=100)))
    room.admit_waiting()
    room.admit_waiting(idle=True)
    room.enqueue(("asks", rows_of(1, latest=200)))
    assert not room.admit_waiting(idle=True)
    assert room.inside == ["bids", "asks"]


def test_rows_that_fail_are_reported_and_the_others_admitted() -> None:
    room = Room()
    wrong, right = room.enqueue(("wrong", rows_of(1)), ("a", rows_of(1))), room.enqueue(("b", rows_of(1)))
    room.admit_waiting()
    assert isinstance(wrong.exception(), DsmsError)
    assert right.result() is None
    assert room.inside == ["b"]  # the rest of a request that failed is not admitted


def test_what_takes_no_room_is_admitted_by_a_full_domain_after_what_came_before_it() -> None:
    room = Room()
    room.enqueue(("a", rows_of(10)))
    behind, free = room.enqueue(("b", rows_of(1)), ("b", None)), room.enqueue(("c", None))
    room.admit_waiting()
    assert (room.inside, behind.done(), free.done()) == (["a", "c"], False, True)
    room.held = 0
    room.admit_waiting()
    assert (room.inside, behind.done()) == (["a", "c", "b", "b"], True)


def test_waiting_requests_are_refused_with_the_reason() -> None:
    room = Room()
    room.enqueue(("a", rows_of(10)))
    waiting = room.enqueue(("b", rows_of(1)))
    room.admit_waiting()
    room.gate.refuse(DsmsError("closed"))
    with pytest.raises(DsmsError, match="closed"):
        waiting.result()
    assert not room.gate.has_waiting


@pytest.fixture(params=[None, 2], ids=["inline", "two hosts"])
def hosts(request: pytest.FixtureRequest) -> int | None:
    found: int | None = request.param
    return found


def test_a_full_domain_admits_nothing_until_it_has_processed_rows(hosts: int | None) -> None:
    results = ResultCollector()
    with domain_of(asked(all=ALL, even=EVEN), results, hosts, most_rows=10) as domain:
        domain.pause()
        came = threading.Semaphore(0)

        def push() -> None:
            for start in range(0, 100, 5):
                domain.admit([("s", batch(*range(start, start + 5)))])
                came.release()

        pushing = threading.Thread(target=push)
        pushing.start()
        assert came.acquire(timeout=WAIT)
        assert came.acquire(timeout=WAIT)
        assert not came.acquire(timeout=0.3)
        status = domain.status()
        assert status.held == 10
        assert status.ingest.paused
        assert dict(domain.metrics())["dsms_ingest_paused"] == [(("0",), 1.0)]
        domain.resume()
        assert results.of("all", 100) == list(range(100))
        pushing.join(WAIT)
        assert not pushing.is_alive()
        after = settled(domain).ingest
    assert (after.paused, after.limits) == (False, LimitStatus(10, after.limits.bytes))
    assert after.seconds > 0.3


def test_bytes_count_for_every_station_that_rows_wait_for() -> None:
    with domain_of(asked(all=ALL, even=EVEN), most_bytes=160) as domain:
        domain.pause()
        domain.admit([("s", batch(*range(10)))])
        pushing = threading.Thread(target=domain.admit, args=([("s", batch(1))],))
        pushing.start()
        pushing.join(0.3)
        assert pushing.is_alive()
        domain.resume()
        pushing.join(WAIT)
        assert not pushing.is_alive()


def test_operator_state_counts_and_rows_that_may_free_it_are_admitted() -> None:
    """A join that waits for its other stream holds all rows; rows of that stream free them."""
    streams = {name: {"schema": {"x": "int64", "at": "timestamp"}, "timestamp": "at"} for name in ("s", "t")}
    join = "SELECT ISTREAM(s.x) FROM s [NOW], t [NOW] WHERE s.x = t.x"
    results = ResultCollector()

    def rows(first: int) -> Batch:
        return Batch.of({"x": list(range(first, first + 10)), "at": list(range(first, first + 10))})

    with domain_of({"streams": streams, "queries": {"q": {"cql": join}}}, results, most_bytes=20_000) as domain:
        for start in range(0, 400, 10):
            domain.admit([("s", rows(start))])
        waiting = threading.Thread(target=lambda: [domain.admit([("s", rows(n))]) for n in range(400, 4000, 10)])
        waiting.start()
        while not domain.status().ingest.paused:
            assert waiting.is_alive()
        domain.advance("t", 10_000)
        assert results.of("q", 0) == []
        waiting.join(WAIT)
        assert not waiting.is_alive()


def test_waiting_requests_fail_when_the_domain_is_closed() -> None:
    refused = list[BaseException]()
    with domain_of(asked(all=ALL), most_rows=1) as domain:
        domain.pause()
        domain.admit([("s", batch(1))])

        def push() -> None:
            try:
                domain.admit([("s", batch(2))])
            except DsmsError as error:
                refused.append(error)

        pushing = threading.Thread(target=push)
        pushing.start()
        while not domain.status().ingest.paused:
            pass
    pushing.join(WAIT)
    assert [str(error) for error in refused] == ["domain '0' is closed"]


def test_memory_is_that_of_the_machine_or_of_the_container(tmp_path: Path) -> None:
    given, none = tmp_path / "given", tmp_path / "none"
    given.write_text("1048576\n")
    none.write_text("max\n")
    assert read_memory_bytes([given, none, tmp_path / "absent"]) == 1_048_576
    assert read_memory_bytes([none]) == read_memory_bytes([]) > 1_048_576


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
        LiveConfig.read(table)
