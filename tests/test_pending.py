"""Rows wait for their instant to be complete, whatever the batches they came in."""

from __future__ import annotations

import numpy as np

from dsms.batch import Batch
from dsms.operators.pending import BEGINNING, Pending


def batch(*ts, upto=None, ended=False):
    return Batch.of({"x": list(ts)}, ts=list(ts), upto=upto, ended=ended)


def taken(complete):
    return complete.upto, [None if rows is None else rows.each("ts").tolist() for rows in complete.rows]


def test_the_last_instant_of_a_batch_may_go_on_in_the_next():
    pending = Pending()
    assert taken(pending.add(batch(1, 2, 2))) == (2, [[1]])
    assert len(pending) == 2
    assert taken(pending.add(batch(2, 5))) == (5, [[2, 2, 2]])


def test_a_batch_that_says_how_far_time_has_come_is_taken_at_its_word():
    pending = Pending()
    assert taken(pending.add(batch(1, 2, upto=3))) == (3, [[1, 2]])
    assert taken(pending.add(batch(upto=9))) == (9, [None])


def test_two_ports_wait_for_each_other():
    pending = Pending(2)
    assert taken(pending.add(batch(1, 4, 6), 0)) == (BEGINNING, [None, None])
    assert taken(pending.add(batch(2, 5), 1)) == (5, [[1, 4], [2]])
    assert taken(pending.add(batch(upto=6), 1)) == (6, [None, [5]])


def test_an_ended_port_holds_nobody_back_and_the_last_end_lets_everything_go():
    pending = Pending(2)
    pending.add(batch(1, 9), 0)
    assert taken(pending.add(batch(3, upto=10, ended=True), 1)) == (9, [[1], [3]])
    done = pending.add(batch(upto=10, ended=True), 0)
    assert taken(done) == (10, [[9], None])
    assert done.ended


def test_rows_out_of_order_are_put_in_order_before_they_are_taken():
    pending = Pending()
    assert taken(pending.add(batch(7, 5, 8, 6, upto=4))) == (4, [None])
    assert taken(pending.add(batch(9, upto=8))) == (8, [[5, 6, 7]])


def test_many_small_batches_that_wait_are_not_put_together_again_and_again(monkeypatch):
    joined = []
    monkeypatch.setattr(Batch, "joined", classmethod(lambda cls, parts: joined.append(len(parts)) or parts[0]))
    pending = Pending()
    for ts in range(100):
        pending.add(batch(ts + 10, upto=0))
    assert joined == []
    pending.add(batch(upto=60))
    assert joined == [50]


def test_pieces_are_handed_out_as_they_came_in_and_not_copied():
    pending = Pending()
    first, second = batch(1, 2, 3, upto=3), batch(3, 4, upto=4)
    assert [part.each("ts").tolist() for part in pending.pieces(first).pieces[0]] == [[1, 2]]
    upto, ended, pieces = pending.pieces(second)
    assert (upto, ended) == (4, False)
    assert [part.each("ts").tolist() for part in pieces[0]] == [[3], [3]]
    assert np.shares_memory(pieces[0][1].each("ts"), second.each("ts"))
