"""Live runs on Ray, recorded: nothing is missing, and a replay of who decided comes near what was measured."""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import mean

import numpy as np
import pytest
import ray

import dsms
from actors.cli.demo import PLAN, deployable
from actors.demo.load import played, pushes
from actors.deployment import up
from actors.messages import ARRIVALS
from actors.parts import wait_for
from dsms.batch import Batch
from dsms.live.setup import Setup
from dsms.parcel import Parcel
from dsms.planfile import read_table
from dsms.recording import read
from dsms.recording.whatif import what_if

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]
SECONDS = 4.0
RUNS = 3
DRAIN = 30.0
NEAR = 0.25  # how far the mean over three runs may be off; it was 6 to 9 % on two busy cores


def recorded(crew, folder, policy):
    """The demonstration's load on a scheduler and hosts that are actors, each row due when it was to be pushed."""
    table = read_table(PLAN)
    setup = Setup(policy=policy, clock="paced", record=str(folder))
    crew.begin("0", deployable(table), str(PLAN.parent), "plan.toml", None, setup)
    routes, begun = crew.ask("routes"), time.monotonic()
    origin = crew.ask("status")["now"]
    for number, push in enumerate(pushes(table["streams"], SECONDS)):
        time.sleep(max(0.0, begun + push.at - time.monotonic()))
        batch = Batch.of(push.rows, arrived=np.full(push.count, origin + push.at))
        ray.get([crew.hosts[place].put.remote({str(number): batch}) for place in routes[push.stream]])
        parcel = Parcel(str(number), batch.rows, batch.memory(), due=origin + push.at)
        crew.ask("arrived", [(push.stream, parcel)], group=ARRIVALS)
    assert wait_for(lambda: not crew.ask("status")["held"], DRAIN)
    status = crew.ask("status")
    crew.end()
    return status, read(folder)[0]


@pytest.mark.parametrize("policy", ["fifo", "chain"])
def test_replaying_who_decided_comes_near_what_was_measured(crew, tmp_path, policy, record_property):
    ratios = {"memory_mean": [], "latency_mean": []}
    for number in range(RUNS):
        status, recording = recorded(crew, tmp_path / str(number), policy)
        found = what_if(recording, [policy])
        was, [phase] = found.recorded.whole, status["phases"]
        assert recording.complete
        for name in ("results", "turns"):
            assert was[name] == phase[name]
        assert was["latency_mean"] == pytest.approx(phase["latency_mean"])
        assert was["memory_mean"] == pytest.approx(phase["memory_mean"], rel=0.05)  # one goes on until it is closed
        for name, seen in ratios.items():
            seen.append(found.again[name] / was[name])
    for name, seen in ratios.items():
        record_property(name, [round(ratio, 3) for ratio in seen])
        print(policy, name, "replayed to recorded:", [round(ratio, 3) for ratio in seen])
        assert abs(mean(seen) - 1) < NEAR, (name, seen)


def test_a_deployment_is_recorded_until_it_goes_down(ray_cluster, tmp_path):
    table = read_table(PLAN)
    load = pushes(table["streams"], 2.0)
    setup = Setup(policy="fifo", clock="paced", port=0, actors=2, record="runs")
    folder = tmp_path / "runs/0"
    plan = {**deployable(table), "adaptive": {}}
    handle = up(plan, str(tmp_path), "plan.toml", "recorded", setup)
    door = ray.get(handle.identity.remote())["gateways"][0]
    with dsms.connect(door) as client:
        played(client, load, time.sleep)
        ray.get(handle.swap.remote("chain", "to see"))
        played(client, load, time.sleep)
        domain = ray.get(handle.status.remote())["domains"][0]
        assert wait_for(lambda: not ray.get(handle.status.remote())["domains"][0]["held"], DRAIN)
    results = {q["name"]: q["results"] for q in ray.get(handle.status.remote())["domains"][0]["queries"]}
    assert domain["recorded"] == {"folder": str(folder), "error": None}
    ray.get(handle.down.remote())
    [recording] = read(folder)
    assert recording.complete
    assert (recording.about["domain"], recording.about["clock"]) == ("0", "paced")
    parts = list(recording.table("arrivals"))
    assert sum(int(part["rows"].sum()) for part in parts) == 2 * sum(push.count for push in load)
    assert all((part["lag"] > 0).all() and part["lag"].mean() < 1.0 for part in parts)
    found = dict.fromkeys(results, 0)
    for part in recording.table("outputs"):
        for query, rows in zip(part["query"].each(), part["rows"].tolist(), strict=True):
            found[query] += rows
    assert found == results
    assert [phase[1:] for phase in recording.phases()] == [("fifo", "first"), ("chain", "to see")]
    assert all(before[0] < after[0] for before, after in pairwise(recording.phases()))
