"""The demonstration's plan on Ray under a scripted load, with a real Prometheus that looks on."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from prometheus_server import Prometheus, prometheus

import dsms
from actors.cli.demo import PLAN
from actors.deployment import up
from actors.parts import wait_for
from dsms.clock import epoch
from dsms.live.setup import Setup
from dsms.planfile import read_table
from loadgen.load import Load, Recipe

EVERY = 0.1  # seconds of rows that go together
WAIT = 60.0
GARBAGE = b"this is no frame" * 4


class Watched:
    """A deployment and its Prometheus."""

    prometheus: Prometheus

    def __init__(self, handle: Any, folder: Path) -> None:
        self._handle, self.folder = handle, folder
        self.system = self.ask("status")["metrics"].split("/")[2]
        self.door = self.ask("identity")["gateways"][0]
        self.pushed: dict[str, int] = {}
        self.begun = time.time()
        self._gone = False

    def ask(self, method: str, *arguments: Any) -> Any:
        return ray.get(getattr(self._handle, method).remote(*arguments), timeout=WAIT)

    def down(self) -> None:
        """Take it down; nothing if that is done."""
        if not self._gone:
            self._gone = True
            self.ask("down")

    def domain(self) -> dict[str, Any]:
        """The one there is, by its own account."""
        [found] = self.ask("status")["domains"]
        return dict(found)

    def push(self, start: float, stop: float) -> None:
        """The part of the load that is due from then to then, each piece when it is."""
        load, begun = Load(Recipe.of(PLAN, duration=stop)), epoch() - start
        with dsms.connect(self.door) as client:
            for grain in range(round(start / EVERY), round(stop / EVERY)):
                time.sleep(max(0.0, begun + (grain + 1) * EVERY - epoch()))
                for rows in load.rows(grain * EVERY, (grain + 1) * EVERY):
                    client.push(rows.stream, rows.batch, arrived=begun + rows.due)
                    self.pushed[rows.stream] = self.pushed.get(rows.stream, 0) + len(rows.due)
            client.flush(WAIT)

    def drain(self) -> None:
        """Wait until nothing is held."""
        assert wait_for(lambda: not self.domain()["held"], WAIT)

    def refuse(self) -> None:
        """Send what no gateway takes."""
        host, port = self.door.split(":")
        with socket.create_connection((host, int(port)), WAIT) as connection:
            connection.sendall(GARBAGE)
            connection.settimeout(WAIT)
            while connection.recv(1024):
                pass

    def scraped(self) -> None:
        """Wait until what is so now is known to Prometheus too: the scrape after the next began after this."""
        asked = f'count_over_time(up{{instance="{self.system}"}}[10m])'
        seen = self.prometheus.value(asked)
        assert wait_for(lambda: self.prometheus.value(asked) >= seen + 2, WAIT)

    def over(self, expression: str) -> list[dict[str, Any]]:
        """What an expression was from the beginning until now."""
        return self.prometheus.between(expression, self.begun, time.time())


@contextmanager
def watched(folder: Path, name: str = "watched") -> Iterator[Watched]:
    """All of it, recorded to `folder`; Ray is there."""
    told: Any = ray.nodes
    nodes = [f"{node['NodeManagerAddress']}:{node['MetricsExportPort']}" for node in told() if node["Alive"]]
    durable = str(folder.with_name("durable"))
    setup = Setup(policy="fifo", clock="paced", port=0, actors=2, metrics=0, record=str(folder), durable=durable)
    found = Watched(up(read_table(PLAN), str(PLAN.parent), "plan.toml", name, setup), folder)
    try:
        with prometheus(found.system, nodes) as asked:
            assert wait_for(lambda: len(asked.now("up == 1")) == 1 + len(nodes), WAIT), asked.now("up")
            found.prometheus, found.begun = asked, time.time()
            yield found
    finally:
        found.down()
