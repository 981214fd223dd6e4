"""What the scheduler knows of queues: tuples, the oldest, and memory where several read one buffer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DETERMINISTIC

import dsms
from dsms.engine.ledger import NO_HEAD, Buffer, FractionalBuffer, Ledger, SharedBuffer


def ledger_of(readers: int, tuples: str = "individual", buffers: str = "shared", size: float = 1.0) -> Ledger:
    """The ledger of a plan in which this number of queries read one stream."""
    return Ledger(
        dsms.plan_from({
            "streams": {"s": {"size": size}},
            "queries": {f"q{i}": {"from": "s", "operators": [{"name": f"o{i}", "cost": 1}]} for i in range(readers)},
            "run": {"tuples": tuples, "buffers": buffers},
        })
    )  # fmt: skip


def test_a_queue_knows_how_many_and_how_old() -> None:
    queue = ledger_of(1).queues[0]
    assert (queue.count, queue.oldest) == (0, NO_HEAD)
    queue.put(2, 7)
    queue.put(3, 9)
    assert (queue.count, queue.oldest) == (5, 7)
    queue.take(2, 9)
    assert (queue.count, queue.oldest) == (3, 9)
    queue.take(3, NO_HEAD)
    assert (queue.count, queue.oldest) == (0, NO_HEAD)


def test_a_queue_that_changed_is_listed_once() -> None:
    ledger = ledger_of(2)
    for seq in range(3):
        ledger.queues[1].put(1, seq)
    assert ledger.changes == [ledger.queues[1]]


def test_the_buffer_suits_its_readers() -> None:
    assert type(ledger_of(1).streams[0]) is Buffer
    assert type(ledger_of(2).streams[0]) is SharedBuffer
    assert type(ledger_of(2, "fractional").streams[0]) is FractionalBuffer
    private = ledger_of(3, buffers="private").streams[0]
    assert (type(private), private.copies) == (Buffer, 3)
    assert [outlet.copies for outlet in ledger_of(2).outlets] == [0, 0]  # results leave: nobody reads them


def test_readers_of_different_speeds() -> None:
    """Three tuples of 10, 20 and 30 bytes. The fast reader frees nothing; the slow one what both have read."""
    ledger = ledger_of(2)
    fast, slow = ledger.queues
    shared = ledger.streams[0]
    assert shared.release(fast, 1, 10.0) == (0, 0)
    assert shared.release(fast, 1, 20.0) == (0, 0)
    assert shared.release(slow, 1, 10.0) == (1, 10)
    assert shared.release(fast, 1, 30.0) == (0, 0)
    assert shared.release(slow, 2, 50.0) == (2, 50)


def test_a_reader_that_overtakes_the_slowest_frees_up_to_the_next() -> None:
    ledger = ledger_of(3)
    a, b, c = ledger.queues
    shared = ledger.streams[0]
    assert shared.release(a, 2, 2.0) == (0, 0)
    assert shared.release(b, 4, 4.0) == (0, 0)
    assert shared.release(c, 7, 7.0) == (2, 2)
    assert shared.release(a, 5, 5.0) == (2, 2)
    assert shared.release(b, 3, 3.0) == (3, 3)


@DETERMINISTIC
@given(data=st.data(), readers=st.integers(2, 4), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_a_shared_buffer_holds_what_somebody_has_not_read(data: st.DataObject, readers: int, sizes: list[int]) -> None:
    ledger = ledger_of(readers)
    unread = [list(range(len(sizes))) for _ in range(readers)]
    while any(unread):
        who = data.draw(st.sampled_from([i for i in range(readers) if unread[i]]))
        count = data.draw(st.integers(1, len(unread[who])))
        before = set().union(*unread)
        taken, unread[who] = unread[who][:count], unread[who][count:]
        gone = before - set().union(*unread)
        freed = ledger.streams[0].release(ledger.queues[who], count, float(sum(sizes[i] for i in taken)))
        assert freed == (len(gone), sum(sizes[i] for i in gone))


@DETERMINISTIC
@given(data=st.data(), readers=st.integers(2, 4), total=st.integers(1, 40))
def test_fractions_of_a_shared_tuple_are_freed_by_the_slowest_too(
    data: st.DataObject, readers: int, total: int
) -> None:
    """In tenths of a tuple, which no float adds up exactly."""
    ledger = ledger_of(readers, "fractional", size=5.0)
    read = [0] * readers
    while min(read) < total:
        who = data.draw(st.sampled_from([i for i in range(readers) if read[i] < total]))
        part = data.draw(st.integers(1, total - read[who]))
        before, read[who] = min(read), read[who] + part
        freed, freed_bytes = ledger.streams[0].release(ledger.queues[who], part / 10, part / 2)
        assert freed == pytest.approx((min(read) - before) / 10, abs=1e-12)
        assert freed_bytes == pytest.approx((min(read) - before) / 2, abs=1e-12)


def test_private_buffers_free_each_copy_by_itself() -> None:
    ledger = ledger_of(2, buffers="private")
    assert [ledger.streams[0].release(queue, 3, 6.0) for queue in ledger.queues] == [(3, 6), (3, 6)]


def test_nothing_is_younger_than_everything() -> None:
    assert math.inf == NO_HEAD
