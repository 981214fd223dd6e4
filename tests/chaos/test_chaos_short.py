"""The short form of `make chaos`: killed processes lose, duplicate and falsify no result."""

from __future__ import annotations

import pytest

from actors.control.deploy import up
from chaos.__main__ import run
from chaos.expected import QUERIES
from chaos.figures import ChaosStats
from chaos.storm import PAIR, Storm
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError

pytestmark = pytest.mark.ray


@pytest.fixture
def storm(ray_cluster, tmp_path):
    found = Storm(tmp_path, 3, actors=2)
    yield found
    found.close()


def test_a_run_of_the_command_kills_a_host_and_finds_all_results_right(ray_cluster, tmp_path, capsys):
    figures = ChaosStats()
    run(tmp_path, None, None, figures, seed=4, kills=1, deck=("host",))
    assert figures.killed == 1
    assert figures.verdict.right, str(figures)
    assert figures.verdict.compared > 0
    assert "kill 1 of 1: host, recovered in" in capsys.readouterr().out


def test_results_are_those_of_duckdb_after_two_kills_and_a_blackout_with_another_plan(storm, tmp_path):
    storm.strike(PAIR)
    assert storm.ask("durability")["recoveries"] >= 1
    fewer = {name: entry for name, entry in storm.table["queries"].items() if name != "third"}
    storm.blackout({**storm.table, "queries": {**fewer, "late": {"cql": "SELECT id FROM b WHERE id % 5 = 0"}}})
    storm.read_no_more("third")
    verdict = storm.finish()
    assert verdict.right, str(verdict)
    assert verdict.compared > 0
    status = storm.ask("status")
    queries = [query.name for domain in status.domains for query in domain.queries]
    assert sorted(queries) == sorted({*QUERIES, "late"} - {"third"})
    assert status.gateways[0].log.behind == 0
    with pytest.raises(DsmsError, match="holds what an earlier deployment has stored"):
        up(storm.table, str(tmp_path), "storm.toml", "other", LiveConfig(durable=str(tmp_path / "durable"), port=0))
