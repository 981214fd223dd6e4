"""The runner on Ray: an engine in this process whose operators run in Ray actors."""

from __future__ import annotations

import pytest

import dsms
from actors.deployment.actor_handles import wait_until
from actors.hosts.runner import ActorRunner
from actors.rpc.messages import get_result, send
from dsms.data.batch import Batch
from dsms.errors import OperatorError

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

    class RememberingRunner(ActorRunner):
        def close(self):
            hosts.extend(self.host_pool.hosts)
            super().close()

    dsms.simulate(plans / "chain-example.toml", "fifo", runner=RememberingRunner)
    assert len(hosts) == 2

    def gone(actor):
        try:
            return not get_result(send(actor.ping))
        except OperatorError:
            return True

    assert wait_until(lambda: all(map(gone, hosts)), 10)  # a killed actor may answer once more


def test_queries_on_rows_give_the_same_results_on_actors(ray_cluster):
    """A join and a group: operators keep their state in actors, watermarks travel with batches."""
    stream = {"schema": {"k": "int64", "at": "int64"}, "timestamp": "at"}
    text = "SELECT a.k, count(*) AS n FROM a [RANGE 10 MICROSECONDS], b [ROWS 3] WHERE a.k = b.k GROUP BY a.k"
    results = []
    for runner in (None, ActorRunner):
        left = []

        def sink(_, rows, left=left):
            left.extend(zip(rows.each("sign").tolist(), rows.records(), strict=True))

        engine = dsms.Engine(
            dsms.plan_from({"streams": {"a": stream, "b": stream}, "queries": {"q": {"cql": text}}}),
            dsms.policy_named("chain"),
            clock=dsms.WallClock(),
            runner=runner,
            sink=sink,
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
