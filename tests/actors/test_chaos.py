"""Processes of a durable deployment die, one after the other and all at once: nothing is lost, doubled or wrong."""

from __future__ import annotations

import pytest
from chaos.expected import QUERIES
from chaos.storm import PAIR, Storm

from actors.deployment import up
from dsms.errors import DsmsError
from dsms.live.setup import Setup

pytestmark = pytest.mark.ray


@pytest.fixture
def storm(ray_cluster, tmp_path):
    found = Storm(tmp_path, 3, actors=2)
    yield found
    found.close()


def test_results_are_those_of_duckdb_whoever_is_killed_and_after_a_blackout_with_another_plan(storm, tmp_path):
    for kind in ("host", PAIR):
        storm.strike(kind)
    assert storm.ask("safety")["recoveries"] >= 2
    fewer = {name: entry for name, entry in storm.table["queries"].items() if name != "third"}
    storm.blackout({**storm.table, "queries": {**fewer, "late": {"cql": "SELECT id FROM b WHERE id % 5 = 0"}}})
    storm.read_no_more("third")
    verdict = storm.finish()
    assert verdict.right, str(verdict)
    assert verdict.compared > 0
    status = storm.ask("status")
    queries = [query["name"] for domain in status["domains"] for query in domain["queries"]]
    assert sorted(queries) == sorted({*QUERIES, "late"} - {"third"})
    assert status["gateways"][0]["log"]["behind"] == 0
    with pytest.raises(DsmsError, match="holds what an earlier deployment has stored"):
        up(storm.table, str(tmp_path), "storm.toml", "other", Setup(durable=str(tmp_path / "durable"), port=0))
