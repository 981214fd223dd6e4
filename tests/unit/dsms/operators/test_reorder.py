"""The reorder operator: sorts rows by timestamp within the declared lateness, and rejects later rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.queries.streams import list_rows, run_operator

from dsms.config.run import Settings
from dsms.data.batch import Batch
from dsms.errors import PlanError, RowError
from dsms.operators.reorder import ReorderOperator


def rows(*t, **attributes):
    """Rows whose timestamp is in column t; n is their number."""
    columns = {"t": [0 if ts is None else ts for ts in t], "n": list(range(len(t)))}
    return Batch.of(columns | ({"t?": [ts is None for ts in t]} if None in t else {}), **attributes)


def output_of(batch):
    return [row[0] for row in list_rows(batch)], batch.watermark


def test_rows_in_order_pass_immediately_without_a_copy():
    given_rows = rows(1, 2, 2)
    output = ReorderOperator(column="t").process(given_rows)
    assert output_of(output) == ([1, 2, 2], 2)
    assert np.shares_memory(output.columns["n"], given_rows.columns["n"])
    assert np.shares_memory(output.ts, given_rows.columns["t"])


def test_rows_wait_while_older_ones_may_arrive():
    reorder = ReorderOperator(column="t", late=10)
    assert output_of(reorder.process(rows(5, 12))) == ([], 2)
    assert output_of(reorder.process(rows(4, 15))) == ([4, 5], 5)
    assert output_of(reorder.process(rows(5, 11, watermark=30, ended=True))) == ([5, 11, 12, 15], 30)


def test_rows_later_than_declared_become_dead_letters_with_the_reason():
    reorder = ReorderOperator(column="t", late=3)
    assert output_of(reorder.process(rows(10, 7, 6, 2))) == ([7], 7)
    (letter,) = reorder.dead_letters
    assert (letter.kind, letter.batch.columns["t"].tolist()) == ("late", [6, 2])
    reason = "too late by up to 5 microseconds: the stream declares at most 3 microseconds behind the latest row"
    assert letter.reason == reason


@pytest.mark.parametrize("ts", [None, 2**54, -(2**54), 1_763_000_000_000_000_000])
def test_a_row_without_a_valid_timestamp_ends_the_run_or_is_rejected(ts):
    with pytest.raises(RowError, match=r"'t' is (null|out of range)"):
        ReorderOperator(column="t").process(rows(1, ts, 3))
    reorder = ReorderOperator(column="t", on_error="dead-letter")
    assert output_of(reorder.process(rows(1, ts, 3))) == ([1, 3], 3)
    assert [(letter.kind, len(letter.batch)) for letter in reorder.dead_letters] == [("error", 1)]


def test_rows_without_a_timestamp_are_rejected_as_errors():
    reorder = ReorderOperator(column="t", on_error="dead-letter")
    assert output_of(reorder.process(rows(1, None, 3))) == ([1, 3], 3)
    (letter,) = reorder.dead_letters
    assert (letter.kind, letter.batch.records()) == ("error", [{"t": None, "n": 1}])
    assert "'t' is null" in letter.reason


def test_a_watermark_alone_advances_time():
    reorder = ReorderOperator(column="t", late=100)
    reorder.process(rows(5, 9))
    assert output_of(reorder.process(Batch(watermark=9))) == ([5], 9)
    assert output_of(reorder.process(rows(8))) == ([], 9)
    assert [letter.kind for letter in reorder.dead_letters] == ["late"]
    assert "1 microseconds" in reorder.dead_letters[0].reason


def test_the_end_releases_all_rows():
    reorder = ReorderOperator(column="t", late=100)
    reorder.process(rows(9, 5))
    last = reorder.process(Batch(ended=True))
    assert (output_of(last), last.ended) == (([5, 9], 10), True)


def test_without_a_column_rows_keep_their_timestamps():
    assert output_of(ReorderOperator(late=5).process(Batch.of({"x": [1, 2, 3]}, ts=[9, 4, 7]))) == ([4], 4)


def test_a_missing_timestamp_column_is_named():
    with pytest.raises(ValueError, match=r"no column 'when'.*'t'"):
        ReorderOperator(column="when").process(rows(1))


def test_negative_lateness_is_refused():
    with pytest.raises(PlanError, match="late is -1"):
        ReorderOperator(late=-1)


def test_a_fresh_copy_has_no_rows():
    reorder = ReorderOperator(column="t", late=3)
    reorder.process(rows(100))
    assert output_of(reorder.fresh(Settings()).process(rows(1, 4, watermark=9))) == ([1, 4], 9)


def naive(ts, late):
    """Split rows one by one into punctual rows, sorted, and late rows."""
    highest, punctual, tardy = -1000, [], []
    for number, instant in enumerate(ts):
        (tardy if instant < highest - late else punctual).append((instant, number))
        highest = max(highest, instant)
    return sorted(punctual), tardy


@given(st.lists(st.integers(-9, 20)), st.integers(0, 12), st.lists(st.integers(0, 30)), st.data())
def test_any_batch_boundaries_give_the_same_late_rows_and_the_rest_in_order(ts, late, places, data):
    batches, everything = [], rows(*ts)
    stops = sorted(min(place, len(ts)) for place in places)
    for start, stop in zip([0, *stops], [*stops, len(ts)], strict=True):
        batches.append(everything.pick(slice(start, stop)))
        if stop and data.draw(st.booleans()):  # a watermark that promises no more than the declared lateness
            batches.append(Batch(watermark=max(ts[:stop]) - late - data.draw(st.integers(0, 3))))
    reorder = ReorderOperator(column="t", late=late)
    output = run_operator(reorder, [*batches, Batch(watermark=50, ended=True)])
    punctual, tardy = naive(ts, late)
    assert [(row[0], row[3]) for row in output] == punctual
    rejected = [record for letter in reorder.dead_letters for record in letter.batch.records()]
    assert [(record["t"], record["n"]) for record in rejected] == tardy
