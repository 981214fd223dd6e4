"""A deployment of plain objects starts: gateways open last, and waiting says what it waits for."""

from __future__ import annotations

import socket

import numpy as np
import pytest

import dsms
from actors.control.deployment import Deployment
from actors.deployment.actor_handles import DeploymentActors, DomainActors
from actors.deployment.launch import DeploymentSpec
from actors.deployment.start_wait import REPORT_INTERVAL_S, StartWait
from actors.hosts.host import Host
from actors.ingest.gateway import Gateway
from actors.results.release import ReleaseAtOnce
from actors.results.result_hub import ResultHub
from actors.scheduler.scheduler import Scheduler
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError

TABLE = {"streams": {"s": {"schema": {"n": "int64"}}}, "queries": {"all": {"cql": "SELECT n FROM s"}}}


class WatchedGateway(Gateway):
    """Connects a client to itself just before it gets its routes."""

    def __init__(self, address, **options):
        super().__init__("gateway-0", **options)
        self.address, self.refusals = address, []

    def serve(self, routes):
        with pytest.raises(DsmsError) as refused:
            dsms.connect(self.address, timeout=0.2)
        self.refusals.append(str(refused.value))
        super().serve(routes)


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.fixture
def deployment(port, tmp_path):
    """Plain objects in this process; not begun."""
    setup = LiveConfig(port=port)
    scheduler = Scheduler("0", TABLE, str(tmp_path), "plan.toml", None, setup)
    result_hub = ResultHub(ReleaseAtOnce())
    gateway = WatchedGateway(f"127.0.0.1:{port}", result_hub=result_hub)
    parts = DeploymentActors({"0": DomainActors("0", scheduler, (Host(),))}, (gateway,), result_hub)
    made = Deployment(DeploymentSpec("d", TABLE, str(tmp_path), "plan.toml", setup, [["all"]], [1]), parts)
    yield made
    made.down()


def test_a_client_is_refused_until_the_gateway_can_serve_it_and_is_told_all_streams_then(deployment, port):
    with pytest.raises(DsmsError, match="deployment 'd' is being started: starting its actors"):
        deployment.identity()
    assert deployment.begin() == [("127.0.0.1", port)]
    [refusal] = deployment._system.actors.gateways[0].refusals
    assert "refused" in refusal
    assert deployment.identity()["gateways"] == [f"127.0.0.1:{port}"]
    assert deployment.starting_step() is None
    with dsms.connect(f"127.0.0.1:{port}") as client:
        assert (list(client.streams), list(client.queries)) == (["s"], ["all"])
        results = client.subscribe("all", after=0)
        client.push("s", {"n": np.arange(3)})
        assert next(results).columns["n"].tolist() == [0, 1, 2]


class ScriptedTime:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_waiting_reports_every_few_seconds_what_it_waits_for():
    reports, clock = [], ScriptedTime()
    waiting = StartWait(reports.append, limit_s=60.0, now=clock)
    for _ in range(11):
        waiting.check("waiting for 2 of 3 actors to start")
        clock.now += 1.0
    assert [text.partition("; ")[0] for text in reports] == [
        "waiting for 2 of 3 actors to start, for 5 s", "waiting for 2 of 3 actors to start, for 10 s",
    ]  # fmt: skip
    assert "the load of this machine is " in reports[0]


def test_waiting_ends_only_after_a_long_time_without_progress():
    clock = ScriptedTime()
    waiting = StartWait(lambda _: None, limit_s=60.0, now=clock)
    for _ in range(10):
        clock.now += 59.0
        waiting.check("waiting")
        waiting.advance()
    clock.now += 60.5
    with pytest.raises(DsmsError, match="gave up after 60 s: waiting for Ray; the load of this machine is"):
        waiting.check("waiting for Ray")


def test_a_report_after_progress_counts_from_then():
    reports, clock = [], ScriptedTime()
    waiting = StartWait(reports.append, now=clock)
    clock.now += 30.0
    waiting.advance()
    waiting.check("waiting")
    assert reports == []
    clock.now += REPORT_INTERVAL_S
    waiting.check("waiting")
    assert reports[0].startswith("waiting, for 5 s; ")
