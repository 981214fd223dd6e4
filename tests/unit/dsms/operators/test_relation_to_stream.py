"""The relation-to-stream operators: ISTREAM, DSTREAM and RSTREAM."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.queries.streams import cuts, list_rows, make_batch, run_operator, whole

from dsms.config.run import Settings
from dsms.data.schema import Schema
from dsms.errors import PlanError
from dsms.operators.relation_to_stream import RelationToStreamOperator

SCHEMA = Schema.of({"x": "int64"})
ROWS = [(1, 1, 7), (2, -1, 7), (2, 1, 8), (3, -1, 8)]


def changed(kind, *rows, watermark=10):
    return run_operator(RelationToStreamOperator(kind=kind, schema=SCHEMA), whole(rows, watermark))


def test_istream_emits_the_insertions_of_a_relation():
    assert changed("istream", *ROWS) == [(1, 1, 7), (2, 1, 8)]


def test_dstream_emits_the_deletions_of_a_relation_as_new_rows():
    assert changed("dstream", *ROWS) == [(2, 1, 7), (3, 1, 8)]


@pytest.mark.parametrize("kind", ["istream", "dstream"])
def test_omitted_rows_still_advance_time(kind):
    changes = RelationToStreamOperator(kind=kind, schema=SCHEMA)
    assert changes.process(make_batch((1, 1, 7), (4, -1, 7), (4, 1, 8))).watermark == 4
    alone = changes.process(make_batch(watermark=9, ended=True))
    assert (len(alone), alone.watermark, alone.ended) == (0, 9, True)


def test_rstream_emits_all_rows_at_each_instant_with_changes():
    assert changed("rstream", (1, 1, 7), (2, 1, 8), (4, -1, 7)) == [(1, 1, 7), (2, 1, 7), (2, 1, 8), (4, 1, 8)]


def test_an_empty_relation_emits_nothing():
    assert changed("rstream", (1, 1, 7), (2, -1, 7), (3, 1, 8)) == [(1, 1, 7), (3, 1, 8)]


def test_an_instant_whose_rows_cancel_emits_the_contents_in_the_same_order():
    rows = [(1, 1, 7), (1, 1, 8), (2, -1, 7), (2, 1, 7), (3, -1, 9), (3, 1, 9)]
    assert changed("rstream", *rows) == [(ts, 1, x) for ts in (1, 2, 3) for x in (7, 8)]


def test_duplicates_are_emitted_as_often_as_they_were_inserted():
    assert changed("rstream", (1, 1, 7), (1, 1, 8), (1, 1, 7), (2, -1, 7)) == [
        (1, 1, 7), (1, 1, 7), (1, 1, 8), (2, 1, 7), (2, 1, 8),
    ]  # fmt: skip


def test_nulls_are_equal_and_strings_are_compared():
    changes = RelationToStreamOperator(kind="rstream", schema=Schema.of({"x": "int64", "y": "string"}))
    rows = [(1, 1, None, "a"), (1, 1, 0, "a"), (1, 1, 0, None), (2, -1, None, "a"), (3, -1, 0, None)]
    assert run_operator(changes, [make_batch(*rows, columns=("x", "y"), watermark=9)]) == [
        (1, 1, None, "a"), (1, 1, 0, "a"), (1, 1, 0, None), (2, 1, 0, "a"), (2, 1, 0, None), (3, 1, 0, "a"),
    ]  # fmt: skip


def test_retractions_of_missing_rows_are_dead_letters():
    changes = RelationToStreamOperator(kind="rstream", schema=SCHEMA)
    assert run_operator(changes, [make_batch((1, -1, 7), (1, -1, 7), (1, 1, 8), (2, 1, 7), watermark=3)]) == [
        (1, 1, 8), (2, 1, 8), (2, 1, 7),
    ]  # fmt: skip
    (letter,) = changes.dead_letters
    assert (letter.kind, list_rows(letter.batch)) == ("error", [(1, -1, 7), (1, -1, 7)])
    assert letter.reason == "2 rows retracted at 1 that the relation does not hold"


def test_contents_arrive_with_the_latest_row_they_need():
    changes = RelationToStreamOperator(kind="rstream", schema=SCHEMA)
    assert changes.process(make_batch((1, 1, 7), (2, 1, 8), watermark=3, arrived=[5.0, 4.0])).arrived.tolist() == [
        5,
        5,
        5,
    ]
    assert changes.process(make_batch((3, -1, 8), watermark=4, arrived=6.0)).arrived.tolist() == [6]


def test_deleted_rows_are_freed_and_a_fresh_copy_is_empty():
    changes = RelationToStreamOperator(kind="rstream", schema=SCHEMA)
    for start in range(0, 20_000, 100):
        rows = [(start + i, sign, start + i) for i in range(100) for sign in (-1, 1)]
        changes.process(
            make_batch(*[(ts, sign, x - 5 if sign < 0 else x) for ts, sign, x in rows], watermark=start + 100)
        )
    assert changes.held == 5
    assert changes._relation.slots.high < 5000
    assert changes.fresh(Settings()).held == 0


def test_an_unknown_kind_is_refused():
    with pytest.raises(PlanError, match=r"'qstream'.*'rstream'"):
        RelationToStreamOperator(kind="qstream", schema=SCHEMA)


def naive(rows):
    """Return the contents after each instant, counted row by row."""
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
def test_any_batch_boundaries_give_the_same_streams(rows, data):
    for kind, expected in (
        ("istream", [row for row in rows if row[1] > 0]),
        ("dstream", [(ts, 1, value) for ts, sign, value in rows if sign < 0]),
        ("rstream", naive(rows)),
    ):
        assert run_operator(RelationToStreamOperator(kind=kind, schema=SCHEMA), data.draw(cuts(rows, 10))) == expected
        assert changed(kind, *rows) == expected
