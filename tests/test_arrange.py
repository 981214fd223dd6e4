"""Rows put in the order of their timestamps, as far as lateness is declared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import listed, through

from dsms.batch import Batch
from dsms.errors import PlanError, RowError
from dsms.operators.arrange import Arrange
from dsms.settings import Settings


def rows(*t, **attributes):
    """Rows whose timestamp is in column t; n is their number."""
    columns = {"t": [0 if ts is None else ts for ts in t], "n": list(range(len(t)))}
    return Batch.of(columns | ({"t?": [ts is None for ts in t]} if None in t else {}), **attributes)


def arranged(batch):
    return [row[0] for row in listed(batch)], batch.upto


def test_rows_in_order_pass_at_once_without_a_copy():
    given_rows = rows(1, 2, 2)
    put_out = Arrange(column="t").process(given_rows)
    assert arranged(put_out) == ([1, 2, 2], 2)
    assert np.shares_memory(put_out.columns["n"], given_rows.columns["n"])
    assert np.shares_memory(put_out.ts, given_rows.columns["t"])


def test_rows_wait_as_long_as_older_ones_may_come():
    arrange = Arrange(column="t", late=10)
    assert arranged(arrange.process(rows(5, 12))) == ([], 2)
    assert arranged(arrange.process(rows(4, 15))) == ([4, 5], 5)
    assert arranged(arrange.process(rows(5, 11, upto=30, ended=True))) == ([5, 11, 12, 15], 30)


def test_rows_later_than_declared_go_aside_with_the_reason():
    arrange = Arrange(column="t", late=3)
    assert arranged(arrange.process(rows(10, 7, 6, 2))) == ([7], 7)
    (aside,) = arrange.asides
    assert (aside.kind, aside.batch.columns["t"].tolist()) == ("late", [6, 2])
    assert aside.reason == "too late by up to 5 microseconds: 3 microseconds behind the latest row are declared"


@pytest.mark.parametrize("ts", [None, 2**54, -(2**54), 1_763_000_000_000_000_000])
def test_a_row_without_a_timestamp_or_with_one_out_of_range_ends_the_run_or_goes_aside(ts):
    with pytest.raises(RowError, match=r"'t' is (null|out of range)"):
        Arrange(column="t").process(rows(1, ts, 3))
    arrange = Arrange(column="t", on_error="dead-letter")
    assert arranged(arrange.process(rows(1, ts, 3))) == ([1, 3], 3)
    assert [(aside.kind, len(aside.batch)) for aside in arrange.asides] == [("error", 1)]


def test_rows_without_a_timestamp_go_aside_as_errors():
    arrange = Arrange(column="t", on_error="dead-letter")
    assert arranged(arrange.process(rows(1, None, 3))) == ([1, 3], 3)
    (aside,) = arrange.asides
    assert (aside.kind, aside.batch.records()) == ("error", [{"t": None, "n": 1}])
    assert "'t' is null" in aside.reason


def test_time_alone_is_taken_at_its_word():
    arrange = Arrange(column="t", late=100)
    arrange.process(rows(5, 9))
    assert arranged(arrange.process(Batch(upto=9))) == ([5], 9)
    assert arranged(arrange.process(rows(8))) == ([], 9)
    assert [aside.kind for aside in arrange.asides] == ["late"]
    assert "1 microseconds" in arrange.asides[0].reason


def test_the_end_lets_all_out():
    arrange = Arrange(column="t", late=100)
    arrange.process(rows(9, 5))
    last = arrange.process(Batch(ended=True))
    assert (arranged(last), last.ended) == (([5, 9], 10), True)


def test_without_a_column_the_rows_timestamps_are_taken_as_they_are():
    assert arranged(Arrange(late=5).process(Batch.of({"x": [1, 2, 3]}, ts=[9, 4, 7]))) == ([4], 4)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"no column 'when'.*'t'"):
        Arrange(column="when").process(rows(1))


def test_lateness_below_zero_is_refused():
    with pytest.raises(PlanError, match="late is -1"):
        Arrange(late=-1)


def test_a_fresh_arrange_has_seen_nothing():
    arrange = Arrange(column="t", late=3)
    arrange.process(rows(100))
    assert arranged(arrange.fresh(Settings()).process(rows(1, 4, upto=9))) == ([1, 4], 9)


def naive(ts, late):
    """Row by row: what is in time, in order, and what is not."""
    highest, punctual, tardy = -1000, [], []
    for number, instant in enumerate(ts):
        (tardy if instant < highest - late else punctual).append((instant, number))
        highest = max(highest, instant)
    return sorted(punctual), tardy


@given(st.lists(st.integers(-9, 20)), st.integers(0, 12), st.lists(st.integers(0, 30)), st.data())
def test_however_the_rows_are_cut_the_same_ones_are_late_and_the_rest_in_order(ts, late, places, data):
    batches, everything = [], rows(*ts)
    stops = sorted(min(place, len(ts)) for place in places)
    for start, stop in zip([0, *stops], [*stops, len(ts)], strict=True):
        batches.append(everything.pick(slice(start, stop)))
        if stop and data.draw(st.booleans()):  # time that says no more than is declared
            batches.append(Batch(upto=max(ts[:stop]) - late - data.draw(st.integers(0, 3))))
    arrange = Arrange(column="t", late=late)
    put_out = through(arrange, [*batches, Batch(upto=50, ended=True)])
    punctual, tardy = naive(ts, late)
    assert [(row[0], row[3]) for row in put_out] == punctual
    aside = [record for aside in arrange.asides for record in aside.batch.records()]
    assert [(record["t"], record["n"]) for record in aside] == tardy
