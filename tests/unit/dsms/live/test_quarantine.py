"""Operators that always fail: their queries are quarantined, all others go on, and the quarantine can be lifted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.live.domains import STREAMS, Moody, PushedDomain, ResultCollector, batch, domain_of, settled, values

from dsms.data.batch import Batch
from dsms.errors import DsmsError
from dsms.live.monitor.status import QuarantineStatus, RejectedRowsStatus
from dsms.live.quarantine import FAILURE_LIMIT_BATCHES


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


def push(domain: PushedDomain, first: int, batches: int) -> None:
    for x in range(first, first + batches):
        domain.admit([("s", batch(x))])
        settled(domain)


@pytest.fixture(params=[None, 2], ids=["inline", "two hosts"])
def hosts(request: pytest.FixtureRequest) -> int | None:
    found: int | None = request.param
    return found


def test_a_query_whose_operator_always_fails_is_quarantined_and_others_go_on() -> None:
    function, results = Moody(), ResultCollector()
    with domain_of(table(function), results) as domain:
        push(domain, 0, FAILURE_LIMIT_BATCHES + 5)
        status = settled(domain)
        assert results.of("well", FAILURE_LIMIT_BATCHES + 5) == list(range(FAILURE_LIMIT_BATCHES + 5))
        assert [one.query for one in status.quarantine] == ["ill", "after"]
        assert status.quarantine[0].reason == (
            "operator 'f' failed on every row of 8 batches in a row: ValueError: not today"
        )
        assert {one.name: (one.quarantined, one.shed) for one in status.queries} == {
            "well": (False, 0),
            "ill": (True, 5),
            "after": (True, 0),
        }
        assert status.rejected == [RejectedRowsStatus("f", "error", 8, "ValueError: not today")]
        assert status.held == 0

        function.raises = False
        assert sorted(domain.lift("after")) == ["after", "ill"]
        push(domain, 100, 3)
        assert results.of("after", 3) == [100, 101, 102]
        assert settled(domain).quarantine == []


def test_a_quarantine_stays_when_other_queries_are_added_and_removed(hosts: int | None) -> None:
    def fail(batch: Batch) -> Batch:
        raise ValueError("never")

    results = ResultCollector()
    with domain_of(table(fail), results, hosts) as domain:
        push(domain, 0, FAILURE_LIMIT_BATCHES)
        domain.add({"queries": {"more": {"cql": "SELECT x FROM s WHERE x > 0"}}})
        push(domain, 50, 2)
        assert results.of("more", 2) == [50, 51]
        assert {one.query for one in settled(domain).quarantine} == {"ill", "after"}
        domain.remove("after")
        domain.remove("ill")
        assert settled(domain).quarantine == []
        with pytest.raises(DsmsError, match="query 'ill' is not in quarantine; there are none"):
            domain.lift("ill")


def test_an_operator_with_doubtful_state_is_quarantined_and_restarts_empty(hosts: int | None, monkeypatch: Any) -> None:
    from dsms.operators.aggregation.aggregate import AggregateOperator

    right = AggregateOperator.process

    def process(self: AggregateOperator, batch: Batch, port: int = 0) -> Batch:
        made = right(self, batch, port)
        if 13 in values(batch):
            raise RuntimeError("half-way")
        return made

    monkeypatch.setattr(AggregateOperator, "process", process)
    queries = {"well": "SELECT x FROM s", "sums": "SELECT ISTREAM(sum(x) AS x) FROM s [ROWS 10]"}
    asked = {name: {"cql": text} for name, text in queries.items()}
    results = ResultCollector()
    with domain_of(
        {"streams": STREAMS, "queries": asked, "run": {"on_error": "dead-letter"}}, results, hosts
    ) as domain:
        push(domain, 11, 4)  # 11 and 12 are added up, 13 goes wrong, 14 is given up
        [one] = settled(domain).quarantine
        assert one.query == "sums"
        assert "failed halfway through a batch, so its state may be wrong: RuntimeError: half-way" in one.reason
        assert domain.lift("sums") == ["sums"]
        push(domain, 20, 2)
        assert results.of("well", 6) == [11, 12, 13, 14, 20, 21]
        assert results.of("sums", 4) == [11, 23, 20, 41]


def test_an_operator_can_be_quarantined_by_a_call() -> None:
    results = ResultCollector()
    with domain_of(table(lambda batch: batch), results) as domain:
        domain.quarantine("f", "operator 'f' hangs")
        push(domain, 0, 3)
        assert results.of("well", 3) == [0, 1, 2]
        assert settled(domain).quarantine[0] == QuarantineStatus("ill", "operator 'f' hangs")
        assert results.of("ill", 0) == []
