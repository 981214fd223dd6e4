"""Sums over the last seconds, and staleness piece by piece, against what is slower and simpler."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsms
from dsms.data.journal import Journal, RepeatedValue
from dsms.measure.completions import Completions, StaleIntervals
from dsms.measure.histogram import BUCKET_COUNT, BUCKET_EDGES_S, find_buckets, quantile, summarise
from dsms.measure.sliding_sums import WINDOW_S, SlidingSums
from dsms.measure.staleness import Staleness
from dsms.measure.staleness_tracker import KEPT_GAPS, QueryStaleness

instants = st.floats(0, 30, allow_nan=False)
spans = st.lists(st.tuples(instants, st.floats(0, 12), st.integers(0, 2)), max_size=20)


@given(spans)
def test_time_is_shared_out_over_the_slots(given_spans: list[tuple[float, float, int]]) -> None:
    sums = SlidingSums(["x", "y", "z"])
    columns = [np.array(column) for column in zip(*given_spans, strict=True)] or [np.zeros(0)] * 3
    since, length, places = columns[0], columns[1], columns[2].astype(np.int64)
    sums.over(since, since + length, places)
    horizon = math.floor(max((a + b for a, b, _ in given_spans), default=0)) - WINDOW_S
    expected = [
        sum(max(0.0, a + b - max(a, horizon)) for a, b, place in given_spans if place == wanted) for wanted in range(3)
    ]
    assert sums.totals()[:, 0] == pytest.approx(expected)


@given(st.lists(st.tuples(instants, st.integers(1, 5)), max_size=20))
def test_what_is_older_than_the_last_seconds_does_not_count(came: list[tuple[float, int]]) -> None:
    sums = SlidingSums(["x"])
    for instant, amount in came:
        sums.at(np.array([instant]), np.array([0]), np.array([amount]))
    horizon = math.floor(max((instant for instant, _ in came), default=0)) - WINDOW_S
    assert sums.totals()[0, 0] == sum(amount for instant, amount in came if instant >= horizon)


def test_a_name_that_is_new_has_been_watched_for_less_long():
    sums = SlidingSums(["x", "y"])
    sums.at(np.array([9.0]), np.array([0]), np.array([30]))
    after = sums.migrate(["z", "x"], 10.0)
    after.at(np.array([11.0]), np.array([0]), np.array([6]))
    assert after.rates(11.5)[:, 0] == pytest.approx([6 / 1.5, 30 / 5.5])
    assert after.rates(10.0)[0, 0] == 0


@given(st.lists(st.floats(1.1e-6, 1e5), min_size=1, max_size=50), st.sampled_from([0.1, 0.5, 0.99]))
def test_a_quantile_is_at_most_a_bucket_off(values: list[float], part: float) -> None:
    counts = np.bincount(find_buckets(np.array(values)), minlength=BUCKET_COUNT).astype(np.float64)
    found = quantile(counts, part)
    exact = float(np.quantile(values, part, method="inverted_cdf"))
    assert found is not None
    assert exact / 1.13 <= found <= exact * 1.13


def test_every_latency_has_a_bucket():
    places = find_buckets(np.array([-1.0, 0.0, 1e-6, 1.0, 1e5, 1e9]))
    assert places.tolist() == [0, 0, 0, 120, BUCKET_COUNT - 2, BUCKET_COUNT - 1]
    assert (BUCKET_EDGES_S[120] < 1.0, BUCKET_EDGES_S[121]) == (True, pytest.approx(1.0))


def test_of_nothing_there_are_no_figures():
    assert summarise(np.zeros(BUCKET_COUNT), 0.0) == {"mean": None, "p50": None, "p99": None}


def fork() -> dsms.Plan:
    """q's results leave by two ways, so that an older tuple may come out later; p's do not."""
    ways = [
        {"name": "a", "cost": 1},
        {"name": "b", "cost": 1, "inputs": ["a"]},
        {"name": "c", "cost": 1, "inputs": ["a"]},
    ]
    queries = {"p": {"from": "s", "operators": [{"name": "o", "cost": 1}]}, "q": {"from": "s", "operators": ways}}
    return dsms.plan_from({"streams": {"s": {}}, "queries": queries})


@given(st.lists(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), max_size=8), max_size=4))
def test_pieces_add_up_to_the_union(stretches: list[list[tuple[float, float]]]) -> None:
    stale, whole, now, found = QueryStaleness(fork()), Staleness(), 0.0, 0.0
    for stretch in stretches:
        rows = []
        for later, age in stretch:
            now += later
            rows.append((1, max(0.0, now - age * 3), now))
        columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 3
        stale_intervals = StaleIntervals(columns[0].astype(np.int64), columns[1], columns[2])
        whole.add(stale_intervals.since.tolist(), stale_intervals.until.tolist())
        pieces = stale.pieces(stale_intervals)
        found += float((pieces.until - pieces.since).sum())
    assert found == pytest.approx(whole.total)


def test_gaps_that_are_remembered_are_few():
    stale = QueryStaleness(fork())
    ends = np.arange(1.0, 1000.0)
    stale.pieces(StaleIntervals(np.ones(999, np.int64), ends - 0.5, ends))
    assert len(stale.gaps[1]) == KEPT_GAPS
    stale.forget()
    assert stale.gaps == [[], []]


def test_departures_come_in_the_order_they_left_however_they_were_written_down():
    journal = Journal()
    journal.results(0, 1.0, np.array([0.5, 0.0, 0.5]))
    journal.results(0, 2.0, RepeatedValue(1.5, 4))
    journal.results(1, 2.5, [2.0])
    journal.results(0, 3.0, np.array([0.25]))
    gone = Completions.of(journal)
    assert list(zip(*(column.tolist() for column in gone), strict=True)) == [
        (0, 1.0, 0.5, 2),
        (0, 1.0, 0.0, 1),
        (0, 2.0, 1.5, 4),
        (1, 2.5, 2.0, 1),
        (0, 3.0, 0.25, 1),
    ]
    assert [column.tolist() for column in gone.stale_intervals()] == [
        [0, 0, 0, 1],
        [0.0, 1.5, 0.25, 2.0],
        [1.0, 2.0, 3.0, 2.5],
    ]
