"""The queries of the benchmark answer what plain numpy does: here in the small, where it is measured on many rows."""

from __future__ import annotations

import pytest
from benchmarks.queries import numpy_peer, ours
from benchmarks.queries.bids import ResultChecksum, load_for, one_stream
from benchmarks.queries.join_memory import measure_most_held

ROWS = 20_000


@pytest.mark.parametrize("batch", [1_000, 10_000])
@pytest.mark.parametrize("query", ["q0", "q1", "q2", "fc", "fc4", "qa", "qj"])
def test_a_query_answers_what_numpy_does(query: str, batch: int) -> None:
    load = load_for(query, ROWS, batch)
    wanted, found = numpy_peer.answer(query[:2], load), ours.answer(query, load)
    assert wanted.rows > 0
    assert (found.rows, found.total) == (wanted.rows, wanted.total)


def test_each_of_250_queries_answers_what_numpy_does() -> None:
    load = load_for("mq", ROWS, 1_000)
    wanted = numpy_peer.answer("mq", load)
    assert len(wanted.by_query) == 250
    assert ours.answer("mq", load) == wanted


@pytest.mark.parametrize("query", ["qa", "qj"])
def test_keys_known_to_be_small_integers_change_no_answer(query: str) -> None:
    load = load_for(query, ROWS, 1_000)
    assert numpy_peer.answer(f"{query} small keys", load) == numpy_peer.answer(query, load)


def test_answers_do_not_depend_on_how_rows_are_cut() -> None:
    for query in ("qa", "qj"):
        small, large = (load_for(query, ROWS, batch) for batch in (700, 10_000))
        assert numpy_peer.answer(query, small) == numpy_peer.answer(query, large)


def test_a_tally_tells_results_apart_that_differ_in_one_value() -> None:
    (batch,) = one_stream(100, 100).bids
    changed = {**batch, "price": batch["price"] + (batch["ts"] == 0)}
    swapped = {**batch, "price": batch["bidder"], "bidder": batch["price"]}
    totals = set()
    for columns in (batch, changed, swapped):
        tally = ResultChecksum()
        tally.take("q", columns)
        totals.add(tally.total)
    assert len(totals) == 3


def test_a_window_join_holds_no_more_than_its_windows_over_a_million_rows() -> None:
    found = measure_most_held(1_000_000, 10_000)
    assert found.most <= found.bound
