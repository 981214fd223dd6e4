"""The result hub passes results on in order, to files and to subscribers over TCP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.live.in_process_domain import FakeDomain, make_plan, make_routes, run_gateway

import dsms
from actors.results.release import ReleaseAtOnce, ReleaseWithCheckpoint
from actors.results.result_hub import ResultHub
from dsms import Batch, DsmsError
from dsms.data.schema import Schema
from dsms.live.reorder_buffer import ReorderBuffer
from dsms.live.routes import Routes

N = Schema.of({"n": "int64"})


class CoveredHub(ResultHub):
    """A result hub whose results a checkpoint covers as soon as they have come."""

    def __init__(self) -> None:
        super().__init__(ReleaseWithCheckpoint())

    def take(self, results: Any, incarnation: int = 0) -> None:
        super().take(results, incarnation)
        numbers = {name: self._release.count(channel) for name, channel in self._channels.items()}
        self.snapshot(numbers)
        self.release(numbers)


@pytest.fixture(params=["at once", "with checkpoint"])
def outlet(request: pytest.FixtureRequest) -> ResultHub:
    return ResultHub(ReleaseAtOnce()) if request.param == "at once" else CoveredHub()


def rows(*numbers: int, **attributes: Any) -> Batch:
    return Batch.of({"n": np.array(numbers, dtype=np.int64)}, **attributes)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@settings(derandomize=True, database=None, deadline=None, max_examples=100)
@given(st.permutations(range(1, 9)), st.lists(st.integers(1, 8), max_size=5))
def test_results_are_passed_on_once_and_in_order_however_they_arrive(numbers: list[int], doubles: list[int]) -> None:
    order, given_out = ReorderBuffer(), []
    for number in [*numbers[:4], *doubles, *numbers[4:], *doubles]:
        given_out += order.take(number, rows(number))
    assert [(number, batch.records()) for number, batch in given_out] == [(n, [{"n": n}]) for n in range(1, 9)]
    assert (order.latest, order.held) == (8, 0)


def test_early_results_are_held_and_the_last_ones_are_kept() -> None:
    order = ReorderBuffer(batches=2, size=1000)
    assert list(order.take(2, rows(2))) == []
    assert order.held == 1
    assert [number for number, _ in order.take(1, rows(1))] == [1, 2]
    list(order.take(3, rows(3)))
    assert [number for number, _ in order.after(0)] == [2, 3]
    assert [number for number, _ in order.after(2)] == [3]
    assert order.after(None) == order.after(3) == order.after(99) == []
    list(order.take(4, rows(*range(200))))
    assert order.after(0) == []


def test_lines_are_written_at_once_and_parquet_at_the_end(outlet: ResultHub, tmp_path: Path) -> None:
    outlet.open({"j": ({"jsonl": "j.jsonl"}, N, True), "c": ({"csv": "c.csv"}, N, False)}, str(tmp_path))
    outlet.open({"p": ({"parquet": "p.parquet"}, N, True), "none": (None, N, True)}, str(tmp_path))
    for query in ("j", "c", "p", "none", "nobody"):
        outlet.take([(query, 2, rows(3, ts=7))])
        outlet.take([(query, 1, rows(1, 2, ts=5))])
    assert lines(tmp_path / "j.jsonl") == [{"ts": 5, "n": 1}, {"ts": 5, "n": 2}, {"ts": 7, "n": 3}]
    assert (tmp_path / "c.csv").read_text().splitlines() == ['"ts","sign","n"', "5,1,1", "5,1,2", "7,1,3"]
    assert not (tmp_path / "p.parquet").exists()
    outlet.close_query("p")
    assert parquet.read_table(tmp_path / "p.parquet").to_pylist()[2] == {"ts": 7, "n": 3}
    assert [(q["name"], q["results"], q["rows"], q["held"]) for q in outlet.status()["queries"]] == [
        ("j", 2, 3, 0),
        ("c", 2, 3, 0),
        ("none", 2, 3, 0),
    ]
    outlet.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.csv", "j.jsonl", "p.parquet"]


def test_unknown_columns_are_inferred_from_the_first_rows(outlet: ResultHub, tmp_path: Path) -> None:
    outlet.open({"q": ({"jsonl": "q.jsonl"}, None, True)}, str(tmp_path))
    outlet.take([("q", 1, Batch.of({"who": ["a"], "x": [0.5]}, ts=1))])
    assert lines(tmp_path / "q.jsonl") == [{"ts": 1, "who": "a", "x": 0.5}]
    outlet.take([("q", 2, Batch.of({"who": ["a"]}, ts=1))])
    assert "no column 'x'" in outlet.status()["queries"][0]["error"]
    outlet.close()


def test_a_file_that_cannot_be_opened_is_an_error_and_opens_none(outlet: ResultHub, tmp_path: Path) -> None:
    with pytest.raises(DsmsError, match=r"queries\.b\.sink"):
        outlet.open({"a": (None, N, True), "b": ({"jsonl": "no/b.jsonl"}, N, True)}, str(tmp_path))
    assert outlet.status() == {"queries": []}
    outlet.open({"a": (None, N, True)}, str(tmp_path))
    with pytest.raises(DsmsError, match="'a' has an output already"):
        outlet.open({"a": (None, N, True)}, str(tmp_path))


def test_subscribers_get_kept_results_and_what_follows(outlet: ResultHub, tmp_path: Path) -> None:
    plan = make_plan({"s": {"n": "int64"}}, q="SELECT n FROM s WHERE n > 1")
    outlet.open({"q": (None, N, True)}, str(tmp_path))
    domain = FakeDomain(plan, outlet)
    with (
        run_gateway(make_routes(plan, domain), result_hub=outlet) as (gateway, address),
        dsms.connect(address) as client,
    ):
        for number in (1, 2, 3, 4):
            client.push("s", {"n": [number]})
            client.flush(5)
        past = client.subscribe("q", after=1)
        assert [(batch.number, batch.records()) for batch in (next(past), next(past))] == [
            (2, [{"n": 3}]),
            (3, [{"n": 4}]),
        ]
        client.push("s", {"n": [5]})
        assert next(past).number == 4
        past.close()
        client.flush(5)
        while gateway.status()["subscribers"]:
            pass
        later = client.subscribe("q", after=1000)
        while not gateway.status()["subscribers"] or not outlet.status()["queries"][0]["gateways"]:
            pass
        client.push("s", {"n": [6]})
        assert next(later).number == 5


def test_a_query_that_is_added_again_continues_its_numbers(outlet: ResultHub, tmp_path: Path) -> None:
    outlet.open({"q": (None, N, True)}, str(tmp_path))
    with run_gateway(Routes(queries={"q": N}), result_hub=outlet) as (_, address), dsms.connect(address) as client:
        wanted = client.subscribe("q", after=0)
        while not outlet.status()["queries"][0]["gateways"]:
            pass
        for number in (2, 1):
            outlet.take([("q", number, rows(number))])
        outlet.close_query("q")
        outlet.take([("q", 3, rows(99))])
        outlet.open({"q": (None, N, True)}, str(tmp_path))
        outlet.take([("q", 1, rows(3))])
        assert [(batch.number, batch.records()) for batch in (next(wanted) for _ in range(3))] == [
            (number, [{"n": number}]) for number in (1, 2, 3)
        ]


def test_two_gateways_each_get_the_results_of_their_subscribers(outlet: ResultHub, tmp_path: Path) -> None:
    outlet.open({"q": (None, N, True), "r": (None, N, True)}, str(tmp_path))
    routes = Routes(queries={"q": N, "r": N})
    with (
        run_gateway(routes, "a", result_hub=outlet) as (_, first),
        run_gateway(routes, "b", result_hub=outlet) as (_, second),
        dsms.connect(first) as one,
        dsms.connect(second) as two,
    ):
        wanted = [one.subscribe("q"), two.subscribe("q"), two.subscribe("r")]
        while [query["gateways"] for query in outlet.status()["queries"]] != [2, 1]:
            pass
        outlet.take([("q", 1, rows(1))])
        outlet.take([("r", 1, rows(2))])
        assert [next(each).records() for each in wanted] == [[{"n": 1}], [{"n": 1}], [{"n": 2}]]


def test_an_unknown_query_is_refused_and_columns_of_functions_come_with_the_first_rows(
    outlet: ResultHub,
    tmp_path: Path,
) -> None:
    outlet.open({"f": (None, None, True)}, str(tmp_path))
    with run_gateway(Routes(), result_hub=outlet) as (_, address), dsms.connect(address) as client:
        with pytest.raises(DsmsError, match=r"no query 'g'.*there are \['f'\]"):
            next(client.subscribe("g"))
        wanted = client.subscribe("f", after=0)
        outlet.take([("f", 1, Batch.of({"who": ["é", ""], "x": [1.5, 2.5]}, ts=3, sign=[1, -1]))])
        found = next(wanted)
        assert (found.records(), found.ts.tolist(), found.sign.tolist()) == (
            [{"who": "é", "x": 1.5}, {"who": "", "x": 2.5}],
            [3, 3],
            [1, -1],
        )
        assert client.queries["f"] == Schema.of({"who": "string", "x": "float64"})


def test_the_result_hub_knows_which_results_are_missing(outlet: ResultHub, tmp_path: Path) -> None:
    outlet.open({"q": (None, N, True), "r": (None, N, True)}, str(tmp_path))
    for number in (1, 2):
        outlet.take([("q", number, rows(number))])
    assert outlet.find_incomplete({"q": 2}) == []
    assert outlet.find_incomplete({"q": 3, "r": 1}) == ["q", "r"]


def test_a_query_that_never_started_leaves_its_file_as_it_was(outlet: ResultHub, tmp_path: Path) -> None:
    (tmp_path / "q.parquet").write_text("there before")
    outlet.open({"q": ({"parquet": "q.parquet"}, N, True)}, str(tmp_path))
    outlet.close_query("q", False)
    assert (tmp_path / "q.parquet").read_text() == "there before"
