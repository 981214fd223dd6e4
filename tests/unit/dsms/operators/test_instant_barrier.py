"""The instant barrier releases rows when their instant is complete, for any batch boundaries."""

from __future__ import annotations

import numpy as np

from dsms.data.batch import Batch
from dsms.operators.instant_barrier import MIN_TIMESTAMP, InstantBarrier


def batch(*ts, watermark=None, ended=False):
    return Batch.of({"x": list(ts)}, ts=list(ts), watermark=watermark, ended=ended)


def taken(complete):
    return complete.watermark, [None if rows is None else rows.each("ts").tolist() for rows in complete.rows]


def test_the_last_instant_of_a_batch_may_continue_in_the_next():
    pending = InstantBarrier()
    assert taken(pending.add(batch(1, 2, 2))) == (2, [[1]])
    assert len(pending) == 2
    assert taken(pending.add(batch(2, 5))) == (5, [[2, 2, 2]])


def test_an_explicit_watermark_completes_the_instants_before_it():
    pending = InstantBarrier()
    assert taken(pending.add(batch(1, 2, watermark=3))) == (3, [[1, 2]])
    assert taken(pending.add(batch(watermark=9))) == (9, [None])


def test_two_ports_wait_for_each_other():
    pending = InstantBarrier(2)
    assert taken(pending.add(batch(1, 4, 6), 0)) == (MIN_TIMESTAMP, [None, None])
    assert taken(pending.add(batch(2, 5), 1)) == (5, [[1, 4], [2]])
    assert taken(pending.add(batch(watermark=6), 1)) == (6, [None, [5]])


def test_an_ended_port_delays_no_other_and_the_last_end_releases_all_rows():
    pending = InstantBarrier(2)
    pending.add(batch(1, 9), 0)
    assert taken(pending.add(batch(3, watermark=10, ended=True), 1)) == (9, [[1], [3]])
    done = pending.add(batch(watermark=10, ended=True), 0)
    assert taken(done) == (10, [[9], None])
    assert done.ended


def test_rows_out_of_order_are_sorted_before_they_are_released():
    pending = InstantBarrier()
    assert taken(pending.add(batch(7, 5, 8, 6, watermark=4))) == (4, [None])
    assert taken(pending.add(batch(9, watermark=8))) == (8, [[5, 6, 7]])


def test_waiting_small_batches_are_not_joined_repeatedly(monkeypatch):
    joined = []
    monkeypatch.setattr(Batch, "joined", classmethod(lambda cls, parts: joined.append(len(parts)) or parts[0]))
    pending = InstantBarrier()
    for ts in range(100):
        pending.add(batch(ts + 10, watermark=0))
    assert joined == []
    pending.add(batch(watermark=60))
    assert joined == [50]


def test_pieces_are_released_without_a_copy():
    pending = InstantBarrier()
    first, second = batch(1, 2, 3, watermark=3), batch(3, 4, watermark=4)
    assert [part.each("ts").tolist() for part in pending.pieces(first).pieces[0]] == [[1, 2]]
    watermark, ended, pieces = pending.pieces(second)
    assert (watermark, ended) == (4, False)
    assert [part.each("ts").tolist() for part in pieces[0]] == [[3], [3]]
    assert np.shares_memory(pieces[0][1].each("ts"), second.each("ts"))
