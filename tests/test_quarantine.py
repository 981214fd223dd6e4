"""Operators that always fail: their queries rest, all others go on, and somebody may let them try again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_domain import STREAMS, Results, batch, domain_of, settled
from test_salvage import values

from dsms.batch import Batch
from dsms.errors import DsmsError
from dsms.live.domain import Domain
from dsms.live.quarantine import FAILURES


class Moody:
    """Raises as long as it is told to."""

    def __init__(self) -> None:
        self.raises = True

    def __call__(self, batch: Batch) -> Batch:
        if self.raises:
            raise ValueError("not today")
        return batch


def table(function: Callable[[Batch], Any]) -> dict[str, Any]:
    """`well` reads the stream; `ill` has an operator that may fail, and `after` reads that."""
    return {
        "streams": STREAMS,
        "queries": {
            "well": {"cql": "SELECT x FROM s"},
            "ill": {"from": "s", "operators": [{"name": "f", "function": function}]},
            "after": {"from": "ill.f", "operators": [{"name": "g", "function": lambda batch: batch}]},
        },
        "run": {"on_error": "dead-letter"},
    }


def push(domain: Domain, first: int, batches: int) -> None:
    for x in range(first, first + batches):
        domain.arrived([("s", batch(x))])
        settled(domain)


@pytest.fixture(params=[None, 2], ids=["inline", "two hosts"])
def hosts(request: pytest.FixtureRequest) -> int | None:
    found: int | None = request.param
    return found


def test_a_query_whose_operator_fails_on_all_rests_and_others_go_on() -> None:
    function, results = Moody(), Results()
    with domain_of(table(function), results) as domain:
        push(domain, 0, FAILURES + 5)
        status = settled(domain)
        assert results.of("well", FAILURES + 5) == list(range(FAILURES + 5))
        assert [one["query"] for one in status["quarantine"]] == ["ill", "after"]
        assert status["quarantine"][0]["reason"] == (
            "operator 'f' fails on all rows of 8 batches in a row: ValueError: not today"
        )
        assert {one["name"]: (one["quarantined"], one["shed"]) for one in status["queries"]} == {
            "well": (False, 0),
            "ill": (True, 5),
            "after": (True, 0),
        }
        assert status["asides"] == [{"station": "f", "kind": "error", "rows": 8, "reason": "ValueError: not today"}]
        assert status["held"] == 0

        function.raises = False
        assert sorted(domain.readmit("after")) == ["after", "ill"]
        push(domain, 100, 3)
        assert results.of("after", 3) == [100, 101, 102]
        assert settled(domain)["quarantine"] == []


def test_what_rests_goes_on_resting_when_other_queries_come_and_go(hosts: int | None) -> None:
    def fail(batch: Batch) -> Batch:
        raise ValueError("never")

    results = Results()
    with domain_of(table(fail), results, hosts) as domain:
        push(domain, 0, FAILURES)
        domain.add({"queries": {"more": {"cql": "SELECT x FROM s WHERE x > 0"}}})
        push(domain, 50, 2)
        assert results.of("more", 2) == [50, 51]
        assert {one["query"] for one in settled(domain)["quarantine"]} == {"ill", "after"}
        domain.remove("after")
        domain.remove("ill")
        assert settled(domain)["quarantine"] == []
        with pytest.raises(DsmsError, match="query 'ill' is not in quarantine; there are none"):
            domain.readmit("ill")


def test_one_with_state_in_doubt_rests_at_once_and_begins_anew(hosts: int | None, monkeypatch: Any) -> None:
    from dsms.operators.aggregation.aggregate import Aggregate

    right = Aggregate.process

    def process(self: Aggregate, batch: Batch, port: int = 0) -> Batch:
        made = right(self, batch, port)
        if 13 in values(batch):
            raise RuntimeError("half-way")
        return made

    monkeypatch.setattr(Aggregate, "process", process)
    queries = {"well": "SELECT x FROM s", "sums": "SELECT ISTREAM(sum(x) AS x) FROM s [ROWS 10]"}
    asked = {name: {"cql": text} for name, text in queries.items()}
    results = Results()
    with domain_of(
        {"streams": STREAMS, "queries": asked, "run": {"on_error": "dead-letter"}}, results, hosts
    ) as domain:
        push(domain, 11, 4)  # 11 and 12 are added up, 13 goes wrong, 14 is given up
        [one] = settled(domain)["quarantine"]
        assert one["query"] == "sums"
        assert "has failed half-way, so its state is in doubt: RuntimeError: half-way" in one["reason"]
        assert domain.readmit("sums") == ["sums"]
        push(domain, 20, 2)
        assert results.of("well", 6) == [11, 12, 13, 14, 20, 21]
        assert results.of("sums", 4) == [11, 23, 20, 41]


def test_an_operator_may_be_barred_by_others() -> None:
    results = Results()
    with domain_of(table(lambda batch: batch), results) as domain:
        domain.bar("f", "operator 'f' hangs")
        push(domain, 0, 3)
        assert results.of("well", 3) == [0, 1, 2]
        assert settled(domain)["quarantine"][0] == {"query": "ill", "reason": "operator 'f' hangs"}
        assert results.of("ill", 0) == []
