"""Streams made of a relation's changes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import batch, cuts, listed, through, whole

from dsms.errors import PlanError
from dsms.operators.changes import Changes
from dsms.schema import Schema
from dsms.settings import Settings

SCHEMA = Schema.of({"x": "int64"})
ROWS = [(1, 1, 7), (2, -1, 7), (2, 1, 8), (3, -1, 8)]


def changed(kind, *rows, upto=10):
    return through(Changes(kind=kind, schema=SCHEMA), whole(rows, upto))


def test_what_comes_to_a_relation():
    assert changed("istream", *ROWS) == [(1, 1, 7), (2, 1, 8)]


def test_what_leaves_a_relation_is_new_in_its_stream():
    assert changed("dstream", *ROWS) == [(2, 1, 7), (3, 1, 8)]


@pytest.mark.parametrize("kind", ["istream", "dstream"])
def test_rows_left_out_still_bring_their_time(kind):
    changes = Changes(kind=kind, schema=SCHEMA)
    assert changes.process(batch((1, 1, 7), (4, -1, 7), (4, 1, 8))).upto == 4
    alone = changes.process(batch(upto=9, ended=True))
    assert (len(alone), alone.upto, alone.ended) == (0, 9, True)


def test_all_contents_at_each_instant_that_brings_something():
    assert changed("rstream", (1, 1, 7), (2, 1, 8), (4, -1, 7)) == [(1, 1, 7), (2, 1, 7), (2, 1, 8), (4, 1, 8)]


def test_nothing_is_put_out_of_an_empty_relation():
    assert changed("rstream", (1, 1, 7), (2, -1, 7), (3, 1, 8)) == [(1, 1, 7), (3, 1, 8)]


def test_an_instant_whose_rows_cancel_shows_the_contents_again_in_their_places():
    rows = [(1, 1, 7), (1, 1, 8), (2, -1, 7), (2, 1, 7), (3, -1, 9), (3, 1, 9)]
    assert changed("rstream", *rows) == [(ts, 1, x) for ts in (1, 2, 3) for x in (7, 8)]


def test_equal_rows_are_there_as_often_as_they_came():
    assert changed("rstream", (1, 1, 7), (1, 1, 8), (1, 1, 7), (2, -1, 7)) == [
        (1, 1, 7), (1, 1, 7), (1, 1, 8), (2, 1, 7), (2, 1, 8),
    ]  # fmt: skip


def test_nulls_equal_nulls_and_strings_are_values_too():
    changes = Changes(kind="rstream", schema=Schema.of({"x": "int64", "y": "string"}))
    rows = [(1, 1, None, "a"), (1, 1, 0, "a"), (1, 1, 0, None), (2, -1, None, "a"), (3, -1, 0, None)]
    assert through(changes, [batch(*rows, columns=("x", "y"), upto=9)]) == [
        (1, 1, None, "a"), (1, 1, 0, "a"), (1, 1, 0, None), (2, 1, 0, "a"), (2, 1, 0, None), (3, 1, 0, "a"),
    ]  # fmt: skip


def test_rows_taken_back_that_were_never_there_go_aside():
    changes = Changes(kind="rstream", schema=SCHEMA)
    assert through(changes, [batch((1, -1, 7), (1, -1, 7), (1, 1, 8), (2, 1, 7), upto=3)]) == [
        (1, 1, 8), (2, 1, 8), (2, 1, 7),
    ]  # fmt: skip
    (aside,) = changes.asides
    assert (aside.kind, listed(aside.batch)) == ("error", [(1, -1, 7), (1, -1, 7)])
    assert aside.reason == "2 rows taken back at 1 that the relation does not have"


def test_contents_arrived_with_the_latest_row_they_needed():
    changes = Changes(kind="rstream", schema=SCHEMA)
    assert changes.process(batch((1, 1, 7), (2, 1, 8), upto=3, arrived=[5.0, 4.0])).arrived.tolist() == [5, 5, 5]
    assert changes.process(batch((3, -1, 8), upto=4, arrived=6.0)).arrived.tolist() == [6]


def test_rows_that_have_left_are_let_go_and_a_fresh_one_is_empty():
    changes = Changes(kind="rstream", schema=SCHEMA)
    for start in range(0, 20_000, 100):
        rows = [(start + i, sign, start + i) for i in range(100) for sign in (-1, 1)]
        changes.process(batch(*[(ts, sign, x - 5 if sign < 0 else x) for ts, sign, x in rows], upto=start + 100))
    assert changes.held == 5
    assert changes._relation.slots.high < 5000
    assert changes.fresh(Settings()).held == 0


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(PlanError, match=r"'qstream'.*'rstream'"):
        Changes(kind="qstream", schema=SCHEMA)


def naive(rows):
    """The contents after each instant, counted row by row."""
    counts, places, shown = Counter(), [], []
    for now in sorted({row[0] for row in rows}):
        here = [row for row in rows if row[0] == now]
        for _, sign, value in here:
            counts[value] += sign
        counts = Counter({value: count for value, count in counts.items() if count > 0})
        places = [value for value in places if value in counts]
        for _, sign, value in here:
            if sign > 0 and value in counts and value not in places:
                places.append(value)
        shown += [(now, 1, value) for value in places for _ in range(counts[value])]
    return shown


SIGNED = st.lists(
    st.tuples(st.integers(-5, 9), st.sampled_from([-1, 1, 1]), st.sampled_from([None, 0, 1, 2])), max_size=14
).map(lambda rows: sorted(rows, key=lambda row: row[:2]))


@given(SIGNED, st.data())
def test_however_the_rows_are_cut_the_streams_are_the_same(rows, data):
    for kind, expected in (
        ("istream", [row for row in rows if row[1] > 0]),
        ("dstream", [(ts, 1, value) for ts, sign, value in rows if sign < 0]),
        ("rstream", naive(rows)),
    ):
        assert through(Changes(kind=kind, schema=SCHEMA), data.draw(cuts(rows, 10))) == expected
        assert changed(kind, *rows) == expected
