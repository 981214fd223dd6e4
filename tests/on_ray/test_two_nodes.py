"""A cluster of two nodes on one machine, started by the scripts of deploy/: a plan on both gives the same results."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from support.live.ray_nodes import ClusterScripts, find_free_port, find_node_processes, read_session_id

import dsms
from dsms.data.batch import Batch

pytestmark = pytest.mark.ray

STREAM = {"schema": {"k": "int64", "v": "int64"}}
TABLE: dict[str, Any] = {
    "streams": {"a": STREAM, "b": STREAM},
    "queries": {
        "low": {"cql": "SELECT k, v FROM a WHERE k < 5", "sink": {"jsonl": "low.jsonl"}},
        "sums": {"cql": "SELECT ISTREAM(k, sum(v) AS s) FROM b [ROWS 4] GROUP BY k", "sink": {"jsonl": "sums.jsonl"}},
    },
}
PUSHES = [
    (name, {"k": [(7 * n + i) % 9 for i in range(20)], "v": list(range(20))}) for n in range(10) for name in ("a", "b")
]

# Runs in a process of its own: this one may be part of another cluster.
DRIVER = """
import json, sys
import ray
from ray.util.placement_group import placement_group_table
from actors.cluster import cluster
from actors.control.deploy import up
from actors.deployment.actor_handles import list_actor_names, list_placement_groups, wait_until
from dsms import connect
from dsms.config.live import LiveConfig

folder, table, pushes, expected = json.loads(sys.stdin.read())
cluster.connect("auto", timeout=60)
handle = up(table, folder, "plan.toml", setup=LiveConfig(domains=2, port=0))
nodes = {node for group in placement_group_table().values() for node in group["bundles_to_node_id"].values()}
with connect(ray.get(handle.status.remote()).gateways[0].address) as client:
    for stream, rows in pushes:
        client.push(stream, rows)
    client.flush(30)
rows = lambda: {query.name: query.rows for query in ray.get(handle.status.remote()).outlet.queries}
assert wait_until(lambda: rows() == expected, 30), (rows(), expected)
domains = [[query.name for query in one.queries] for one in ray.get(handle.status.remote()).domains]
ray.get(handle.down.remote())
assert wait_until(lambda: not list_actor_names("dsms") and not list_placement_groups("dsms"), 10)
print(json.dumps({"nodes": len(nodes), "domains": domains}))
"""


def inline():
    """By query: its results in one process."""
    results = {name: [] for name in TABLE["queries"]}
    engine = dsms.Engine(
        dsms.plan_from(TABLE),
        dsms.policy_named("fifo"),
        clock=dsms.WallClock(),
        sink=lambda query, rows: results[query].extend(rows.records()),
    )
    for stream, rows in PUSHES:
        engine.push(stream, Batch.of(rows))
        engine.run()
    return results


@pytest.fixture
def nodes(tmp_path):
    nodes = ClusterScripts(tmp_path)
    yield nodes
    nodes("stop")


def test_a_plan_on_two_nodes_gives_the_results_of_one_process_and_leaves_nothing(nodes, tmp_path):
    port = find_free_port(6400)
    nodes("head", "--port", str(port), "--ports", "30000", "--budgets", "1", "--memory", "100")
    nodes("worker", f"127.0.0.1:{port}", "--ports", "32000", "--budgets", "1", "--memory", "100")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    started = find_node_processes(nodes.run)
    assert len(started) > 4
    results = inline()
    given = json.dumps([str(tmp_path), TABLE, PUSHES, {name: len(rows) for name, rows in results.items()}])
    told = json.loads(nodes.said([sys.executable, "-c", DRIVER], given=given))
    assert told == {"nodes": 2, "domains": [["sums"], ["low"]]}  # the more expensive query first
    for name, rows in results.items():
        written = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        assert [{key: row[key] for key in rows[0]} for row in written] == rows
    (tmp_path / "wrong").write_text("0" * 64)
    refused = (
        "from actors.cluster import cluster\ntry: cluster.connect('auto')\nexcept Exception as error: print(error)"
    )
    said = nodes.said(
        [sys.executable, "-c", refused], RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(tmp_path / "wrong")
    )
    assert f"does not accept the token in {tmp_path / 'wrong'}" in said
    address = f"127.0.0.1:{port}"  # of a head without a run folder: then DSMS_RAY_TOKEN names the token file
    known = f"from actors.cluster import cluster\ncluster.connect({address!r})\nprint(cluster.list_deployments())"
    assert nodes.said([sys.executable, "-c", known], DSMS_RUN=str(tmp_path / "elsewhere")) == "[]\n"
    before = find_node_processes(nodes.run)
    assert nodes("stop", timeout=30).startswith("ended: head worker")
    assert [pid for pid in started | before if read_session_id(pid) is not None] == []
    assert list(nodes.run.iterdir()) == []
