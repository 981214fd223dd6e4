"""The queries of the benchmark answer what plain numpy does: here in the small, where it is measured on many rows."""

from __future__ import annotations

import pytest
from benchmarks import numpy_peer, ours
from benchmarks.bids import Load, Tally, many_streams, one_stream, two_streams
from benchmarks.held import most_held

ROWS = 20_000


def load(query: str, batch: int) -> Load:
    return {"qj": two_streams, "mq": many_streams}.get(query[:2], one_stream)(ROWS, batch)


def answer(query: str, batch: int) -> Tally:
    tally = Tally()
    getattr(numpy_peer, query)(load(query, batch), tally.take)
    return tally


def our_answer(query: str, batch: int) -> Tally:
    tally = Tally()
    _, work = ours.ready(query, load(query.removesuffix("4"), batch), tally.take)
    work()
    return tally


@pytest.mark.parametrize("batch", [1_000, 10_000])
@pytest.mark.parametrize("query", ["q0", "q1", "q2", "fc", "fc4", "qa", "qj"])
def test_a_query_answers_what_numpy_does(query: str, batch: int) -> None:
    wanted = answer(query.removesuffix("4"), batch)
    found = our_answer(query, batch)
    assert wanted.rows > 0
    assert (found.rows, found.total) == (wanted.rows, wanted.total)


def test_each_of_250_queries_answers_what_numpy_does() -> None:
    wanted = answer("mq", 1_000)
    assert len(wanted.by_query) == 250
    assert our_answer("mq", 1_000) == wanted


@pytest.mark.parametrize("query", ["qa", "qj"])
def test_keys_known_to_be_small_integers_change_no_answer(query: str) -> None:
    assert answer(f"{query}_small", 1_000).total == answer(query, 1_000).total


def test_answers_do_not_depend_on_how_rows_are_cut() -> None:
    assert answer("qj", 700) == answer("qj", 10_000)
    assert answer("qa", 700) == answer("qa", 10_000)


def test_a_tally_tells_results_apart_that_differ_in_one_value() -> None:
    (batch,) = one_stream(100, 100).bids
    changed = {**batch, "price": batch["price"] + (batch["ts"] == 0)}
    swapped = {**batch, "price": batch["bidder"], "bidder": batch["price"]}
    totals = set()
    for columns in (batch, changed, swapped):
        tally = Tally()
        tally.take("q", columns)
        totals.add(tally.total)
    assert len(totals) == 3


def test_a_window_join_holds_no_more_than_its_windows_over_a_million_rows() -> None:
    found = most_held(1_000_000, 10_000)
    assert found.most <= found.bound
