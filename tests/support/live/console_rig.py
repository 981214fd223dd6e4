"""Runs the demonstration's plan on Ray under its load with a console: for tests in the browser and for pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any, cast
from urllib.request import urlopen

import dsms
from actors.cli.demo import PLAN
from actors.console.server import Server
from actors.console.source import DeploymentSource
from actors.control.client import ControlClient
from actors.control.deploy import up
from dsms.clock import monotonic_s
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.live.monitor.status import DeploymentStatus, DomainStatus
from dsms.net.tokens import Tokens
from dsms.query.plan_file import read_table
from loadgen.spec.load import Load, LoadSpec

CHROMIUM = "/usr/bin/chromium"  # Debian's; Playwright's own need not be downloaded
FLAGS = ["--no-sandbox", "--disable-gpu"]  # with a sandbox it refuses to run as root
NAME, TOKEN, HOST = "watched", "open sesame", "127.0.0.1"
PUSH_INTERVAL_S = 0.2  # of rows that go together
LOAD_DURATION_S = 12.0  # then the load begins again


class CountingSystem:
    """A control client that counts calls."""

    def __init__(self, name: str, handle: Any) -> None:
        self.handle, self.asked = handle, list[str]()
        self._system = ControlClient(name, handle)

    def ask(self, method: str, *given: Any, **named: Any) -> Any:
        self.asked.append(method)
        return self._system.ask(method, *given, **named)

    def status(self) -> DeploymentStatus:
        status: DeploymentStatus = self.ask("status")
        return status


class ConsoleRig:
    """A deployment and the address of its console."""

    def __init__(self, stack: ExitStack) -> None:
        self.system = deploy_demo()
        stack.callback(lambda: self.system.ask("down"))
        server = Server(DeploymentSource(lambda: cast(ControlClient, self.system)), HOST, 0, Tokens.of(control=TOKEN))
        stack.callback(server.stop)
        server.start()
        self.url = server.url

    def status(self) -> DomainStatus:
        """Return the status of its only domain."""
        return self.system.status().domains[0]


def deploy_demo() -> CountingSystem:
    """Deploy the demonstration's plan with one actor for all stations, and with metrics."""
    table = read_table(PLAN)
    setup = LiveConfig.read({**table["live"], "actors": 1, "metrics": 0})
    return CountingSystem(NAME, up(table, str(PLAN.parent), str(PLAN), NAME, setup, replace=True))


@contextmanager
def rig() -> Iterator[ConsoleRig]:
    """Start all of it on the Ray that this process is connected to."""
    with ExitStack() as stack:
        yield ConsoleRig(stack)


@contextmanager
def load(system: CountingSystem) -> Iterator[None]:
    """Push rows when they are due, until the block ends."""
    enough = threading.Event()
    door = system.ask("identity")["gateways"][0]
    pushing = threading.Thread(target=_push, args=(door, enough.wait), daemon=True)
    pushing.start()
    try:
        yield
    finally:
        enough.set()
        pushing.join()


def _push(door: str, wait: Callable[[float], bool]) -> None:
    rows = Load(LoadSpec.of(PLAN, duration=LOAD_DURATION_S))
    begun, grains = monotonic_s(), round(LOAD_DURATION_S / PUSH_INTERVAL_S)
    with suppress(DsmsError), dsms.connect(door) as client:  # the system may be taken down meanwhile
        for number in count():
            if wait(max(0.0, begun + (number + 1) * PUSH_INTERVAL_S - monotonic_s())):
                return
            since = number % grains * PUSH_INTERVAL_S
            for part in rows.rows(since, since + PUSH_INTERVAL_S):
                client.push(part.stream, part.batch.columns)


def metric(system: CountingSystem, name: str) -> dict[str, float]:
    """Scrape a metric; return its samples by labels."""
    with urlopen(system.ask("status").metrics, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{")}
