"""Several inputs merged in the order of their timestamps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import batch, cuts, listed, through

from dsms.errors import PlanError
from dsms.operators.pending import BEGINNING
from dsms.operators.union import Union
from dsms.settings import Settings


def test_rows_wait_until_no_port_can_bring_older_ones():
    union = Union(inputs=2)
    held = union.process(batch((1, 1, 7), (4, 1, 8)), 0)
    assert (listed(held), held.upto) == ([], BEGINNING)
    put_out = union.process(batch((2, 1, 9), upto=5), 1)
    assert (listed(put_out), put_out.upto, put_out.ended) == ([(1, 1, 7), (2, 1, 9)], 4, False)


def test_at_one_instant_negative_rows_come_first_and_then_the_first_port():
    union = Union(inputs=2)
    union.process(batch((1, -1, "a"), (1, 1, "b"), upto=2), 0)
    put_out = union.process(batch((1, -1, "c"), (1, 1, "d"), upto=2), 1)
    assert listed(put_out) == [(1, -1, "a"), (1, -1, "c"), (1, 1, "b"), (1, 1, "d")]


def test_columns_are_called_as_in_the_first_input_and_nulls_stay_beside_them():
    union = Union(inputs=2, names=(("x", "y"), ("y", "z")))
    union.process(batch((1, 1, 5, "a"), upto=3, columns=("x", "y")), 0)
    put_out = union.process(batch((2, 1, 6, None), upto=3, columns=("y", "z")), 1)
    assert put_out.records() == [{"x": 5, "y": "a"}, {"x": 6, "y": None}]


def test_an_ended_port_holds_nobody_back_and_the_union_ends_with_the_last():
    union = Union(inputs=2)
    union.process(batch(upto=9, ended=True), 1)
    assert listed(union.process(batch((1, 1, 7), upto=2), 0)) == [(1, 1, 7)]
    last = union.process(batch(upto=9, ended=True), 0)
    assert (len(last), last.upto, last.ended) == (0, 9, True)


@pytest.mark.parametrize("names", [(("x",),), (("x",), ("y", "z"))])
def test_inputs_with_other_columns_are_refused(names):
    with pytest.raises(PlanError, match="columns"):
        Union(inputs=2, names=names)


def test_a_fresh_union_has_no_rows_waiting():
    union = Union(inputs=2)
    union.process(batch((1, 1, 7), upto=5), 0)
    assert listed(union.fresh(Settings()).process(batch((2, 1, 8), upto=5, ended=True), 1)) == []


SIGNED = st.lists(st.tuples(st.integers(-5, 9), st.sampled_from([-1, 1]), st.integers(0, 99)), max_size=8).map(
    lambda rows: sorted(rows, key=lambda row: row[:2])
)


@given(st.lists(SIGNED, min_size=1, max_size=3), st.data())
def test_however_the_inputs_are_cut_and_interleaved_the_rows_come_in_one_order(inputs, data):
    given_batches = [data.draw(cuts(rows, 10)) for rows in inputs]
    turns = data.draw(st.permutations([port for port, batches in enumerate(given_batches) for _ in batches]))
    ways = [iter(batches) for batches in given_batches]
    put_out = through(Union(inputs=len(inputs)), [next(ways[port]) for port in turns], turns, ended=True)
    numbered = [(row, port) for port, rows in enumerate(inputs) for row in rows]
    assert put_out == [row for row, port in sorted(numbered, key=lambda pair: (pair[0][:2], pair[1]))]
