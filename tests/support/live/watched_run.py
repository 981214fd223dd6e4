"""Runs the demonstration's plan on Ray under a scripted load, scraped by a real Prometheus."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from support.live.prometheus_server import Prometheus, run_prometheus

import dsms
from actors.cli.demo import PLAN
from actors.control.deploy import up
from actors.deployment.actor_handles import wait_until
from dsms.clock import wall_time_s
from dsms.config.live import LiveConfig
from dsms.live.monitor.status import DeploymentStatus, DomainStatus
from dsms.query.plan_file import read_table
from loadgen.spec.load import Load, LoadSpec

POLL_INTERVAL_S = 0.1  # seconds of load that are sent together
DRAIN_TIMEOUT_S = 60.0
GARBAGE = b"this is no frame" * 4


class MonitoredDeployment:
    """A deployment and its Prometheus."""

    prometheus: Prometheus

    def __init__(self, handle: Any, folder: Path) -> None:
        self._handle, self.folder = handle, folder
        self.system = self.ask("status").metrics.split("/")[2]
        self.door = self.ask("identity")["gateways"][0]
        self.pushed: dict[str, int] = {}
        self.begun = time.time()
        self._gone = False

    def ask(self, method: str, *arguments: Any) -> Any:
        return ray.get(getattr(self._handle, method).remote(*arguments), timeout=DRAIN_TIMEOUT_S)

    def down(self) -> None:
        """End the deployment; a second call does nothing."""
        if not self._gone:
            self._gone = True
            self.ask("down")

    def domain(self) -> DomainStatus:
        """The status of the only domain."""
        status: DeploymentStatus = self.ask("status")
        [found] = status.domains
        return found

    def push(self, start: float, stop: float) -> None:
        """Send the load of an interval, each piece at its time."""
        load, begun = Load(LoadSpec.of(PLAN, duration=stop)), wall_time_s() - start
        with dsms.connect(self.door) as client:
            for grain in range(round(start / POLL_INTERVAL_S), round(stop / POLL_INTERVAL_S)):
                time.sleep(max(0.0, begun + (grain + 1) * POLL_INTERVAL_S - wall_time_s()))
                for rows in load.rows(grain * POLL_INTERVAL_S, (grain + 1) * POLL_INTERVAL_S):
                    client.push(rows.stream, rows.batch, arrived=begun + rows.due)
                    self.pushed[rows.stream] = self.pushed.get(rows.stream, 0) + len(rows.due)
            client.flush(DRAIN_TIMEOUT_S)

    def drain(self) -> None:
        """Wait until all queues are empty."""
        assert wait_until(lambda: not self.domain().held, DRAIN_TIMEOUT_S)

    def refuse(self) -> None:
        """Send frames that a gateway refuses."""
        host, port = self.door.split(":")
        with socket.create_connection((host, int(port)), DRAIN_TIMEOUT_S) as connection:
            connection.sendall(GARBAGE)
            connection.settimeout(DRAIN_TIMEOUT_S)
            while connection.recv(1024):
                pass

    def scraped(self) -> None:
        """Wait for two scrapes: the second has started after this call."""
        asked = f'count_over_time(up{{instance="{self.system}"}}[10m])'
        seen = self.prometheus.value(asked)
        assert wait_until(lambda: self.prometheus.value(asked) >= seen + 2, DRAIN_TIMEOUT_S)

    def over(self, expression: str) -> list[dict[str, Any]]:
        """The values of an expression from the start until now."""
        return self.prometheus.between(expression, self.begun, time.time())


@contextmanager
def run_monitored(folder: Path, name: str = "watched") -> Iterator[MonitoredDeployment]:
    """Start the deployment, recorded to `folder`, and its Prometheus; Ray runs already."""
    told: Any = ray.nodes
    nodes = [f"{node['NodeManagerAddress']}:{node['MetricsExportPort']}" for node in told() if node["Alive"]]
    durable = str(folder.with_name("durable"))
    setup = LiveConfig(policy="fifo", clock="paced", port=0, actors=2, metrics=0, record=str(folder), durable=durable)
    found = MonitoredDeployment(up(read_table(PLAN), str(PLAN.parent), "plan.toml", name, setup), folder)
    try:
        with run_prometheus(found.system, nodes) as asked:
            assert wait_until(lambda: len(asked.now("up == 1")) == 1 + len(nodes), DRAIN_TIMEOUT_S), asked.now("up")
            found.prometheus, found.begun = asked, time.time()
            yield found
    finally:
        found.down()
