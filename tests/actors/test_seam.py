"""The seam: the same engine with its operators as Ray actors takes the same turns as `dsms sim`."""

from __future__ import annotations

import pytest

import dsms
from actors.runner import ActorRunner
from dsms.batch import Batch

pytestmark = pytest.mark.ray


@pytest.mark.parametrize(
    ("plan", "policy"),
    [
        ("chain-example", "greedy"),
        ("chain-example", "fifo"),
        ("fork", "mtiq"),
        ("fork", "rr-query"),
        ("fork", "rr"),
        ("fork", "partition-latency"),
        ("fork", "qos-chain"),
    ],
)
def test_actors_take_the_turns_that_dsms_sim_takes(ray_cluster, plans, tmp_path, plan, policy):
    inline = dsms.simulate(plans / f"{plan}.toml", policy, trace=tmp_path / "inline.jsonl")
    actors = dsms.simulate(plans / f"{plan}.toml", policy, trace=tmp_path / "actors.jsonl", runner=ActorRunner)
    assert (tmp_path / "actors.jsonl").read_bytes() == (tmp_path / "inline.jsonl").read_bytes()
    assert actors == inline


def test_the_actors_are_gone_after_the_run(ray_cluster, plans):
    hosts = []

    class Remembering(ActorRunner):
        def close(self):
            hosts.extend(self.fleet.hosts)
            super().close()

    dsms.simulate(plans / "chain-example.toml", "fifo", runner=Remembering)
    assert len(hosts) == 2
    for actor in hosts:
        with pytest.raises(ray_cluster.exceptions.RayActorError):
            ray_cluster.get(actor.waiting_since.remote())


def test_queries_on_rows_give_the_same_results_on_actors(ray_cluster):
    """A join and a group: what an operator keeps lives in its actor, time travels with the batches."""
    stream = {"schema": {"k": "int64", "at": "int64"}, "timestamp": "at"}
    text = "SELECT a.k, count(*) AS n FROM a [RANGE 10 MICROSECONDS], b [ROWS 3] WHERE a.k = b.k GROUP BY a.k"
    results = []
    for runner in (None, ActorRunner):
        left = []
        engine = dsms.Engine(
            dsms.plan_from({"streams": {"a": stream, "b": stream}, "queries": {"q": {"cql": text}}}),
            dsms.policy_named("chain"),
            clock=dsms.WallClock(),
            runner=runner,
            sink=lambda _, rows, left=left: left.extend(zip(rows.each("sign").tolist(), rows.records(), strict=True)),
        )
        for name, columns in (("a", {"k": [1, 2, 1], "at": [1, 2, 3]}), ("b", {"k": [1, 2], "at": [2, 4]})):
            engine.push(name, Batch.of(columns))
            engine.run()
        engine.end()
        engine.run()
        engine.finish(engine.clock.now())
        results.append(left)
    assert results[0] == results[1]
    assert results[0] == [
        (1, {"k": 1, "n": 1}),
        (-1, {"k": 1, "n": 1}),
        (1, {"k": 1, "n": 2}),
        (1, {"k": 2, "n": 1}),
    ]
