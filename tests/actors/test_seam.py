"""The seam: an engine in this process whose operators are Ray actors of its own."""

from __future__ import annotations

import pytest

import dsms
from actors.parts import wait_for
from actors.runner import ActorRunner
from dsms.batch import Batch

pytestmark = pytest.mark.ray


def test_actors_take_the_turns_that_dsms_sim_takes(ray_cluster, plans, tmp_path):
    """As `dsms sim --runner ray` does it, with actors of its own; test_same_schedule.py has all policies."""
    plan, policy = plans / "fork.toml", "rr-query"
    inline = dsms.simulate(plan, policy, trace=tmp_path / "inline.jsonl")
    actors = dsms.simulate(plan, policy, trace=tmp_path / "actors.jsonl", runner=ActorRunner)
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

    def gone(actor):
        try:
            return not ray_cluster.get(actor.there.remote())
        except ray_cluster.exceptions.RayActorError:
            return True

    assert wait_for(lambda: all(map(gone, hosts)), 10)  # one that is killed may answer once more


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
