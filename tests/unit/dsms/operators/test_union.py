"""The union operator merges several inputs in timestamp order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.queries.streams import cuts, list_rows, make_batch, run_operator

from dsms.config.run import Settings
from dsms.errors import PlanError
from dsms.operators.instant_barrier import MIN_TIMESTAMP
from dsms.operators.union import UnionOperator


def test_rows_wait_until_no_port_can_have_older_ones():
    union = UnionOperator(inputs=2)
    held = union.process(make_batch((1, 1, 7), (4, 1, 8)), 0)
    assert (list_rows(held), held.watermark) == ([], MIN_TIMESTAMP)
    put_out = union.process(make_batch((2, 1, 9), watermark=5), 1)
    assert (list_rows(put_out), put_out.watermark, put_out.ended) == ([(1, 1, 7), (2, 1, 9)], 4, False)


def test_at_one_instant_retractions_come_first_then_ports_in_order():
    union = UnionOperator(inputs=2)
    union.process(make_batch((1, -1, "a"), (1, 1, "b"), watermark=2), 0)
    put_out = union.process(make_batch((1, -1, "c"), (1, 1, "d"), watermark=2), 1)
    assert list_rows(put_out) == [(1, -1, "a"), (1, -1, "c"), (1, 1, "b"), (1, 1, "d")]


def test_columns_take_the_names_of_the_first_input_and_keep_their_nulls():
    union = UnionOperator(inputs=2, names=(("x", "y"), ("y", "z")))
    union.process(make_batch((1, 1, 5, "a"), watermark=3, columns=("x", "y")), 0)
    put_out = union.process(make_batch((2, 1, 6, None), watermark=3, columns=("y", "z")), 1)
    assert put_out.records() == [{"x": 5, "y": "a"}, {"x": 6, "y": None}]


def test_an_ended_port_delays_no_other_and_the_union_ends_with_the_last():
    union = UnionOperator(inputs=2)
    union.process(make_batch(watermark=9, ended=True), 1)
    assert list_rows(union.process(make_batch((1, 1, 7), watermark=2), 0)) == [(1, 1, 7)]
    last = union.process(make_batch(watermark=9, ended=True), 0)
    assert (len(last), last.watermark, last.ended) == (0, 9, True)


@pytest.mark.parametrize("names", [(("x",),), (("x",), ("y", "z"))])
def test_inputs_with_different_columns_are_refused(names):
    with pytest.raises(PlanError, match="columns"):
        UnionOperator(inputs=2, names=names)


def test_a_fresh_copy_has_no_waiting_rows():
    union = UnionOperator(inputs=2)
    union.process(make_batch((1, 1, 7), watermark=5), 0)
    assert list_rows(union.fresh(Settings()).process(make_batch((2, 1, 8), watermark=5, ended=True), 1)) == []


SIGNED = st.lists(st.tuples(st.integers(-5, 9), st.sampled_from([-1, 1]), st.integers(0, 99)), max_size=8).map(
    lambda rows: sorted(rows, key=lambda row: row[:2])
)


@given(st.lists(SIGNED, min_size=1, max_size=3), st.data())
def test_any_batch_boundaries_and_interleaving_give_the_same_order(inputs, data):
    given_batches = [data.draw(cuts(rows, 10)) for rows in inputs]
    turns = data.draw(st.permutations([port for port, batches in enumerate(given_batches) for _ in batches]))
    ways = [iter(batches) for batches in given_batches]
    put_out = run_operator(UnionOperator(inputs=len(inputs)), [next(ways[port]) for port in turns], turns, ended=True)
    numbered = [(row, port) for port, rows in enumerate(inputs) for row in rows]
    assert put_out == [row for row, port in sorted(numbered, key=lambda pair: (pair[0][:2], pair[1]))]
