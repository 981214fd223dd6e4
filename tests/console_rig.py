"""The demonstration's plan on Ray under its load, watched by a console: for tests in the browser and for pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any
from urllib.request import urlopen

import dsms
from actors.cli.asking import System
from actors.cli.demo import PLAN
from actors.console.server import Server
from actors.console.source import Source
from actors.deployment import up
from dsms.clock import stopwatch
from dsms.errors import DsmsError
from dsms.live.setup import Setup
from dsms.planfile import read_table
from dsms.tokens import Tokens
from loadgen.load import Load, Recipe

CHROMIUM = "/usr/bin/chromium"  # Debian's; Playwright's own need not be downloaded
FLAGS = ["--no-sandbox", "--disable-gpu"]  # with a sandbox it refuses to run as root
NAME, TOKEN, HOST = "watched", "open sesame", "127.0.0.1"
EVERY, LENGTH = 0.2, 12.0  # seconds: of rows that go together, and of the load, which begins anew at its end


class Counted:
    """A system that counts what it is asked."""

    def __init__(self, name: str, handle: Any) -> None:
        self.handle, self.asked = handle, list[str]()
        self._system = System(name, handle)

    def ask(self, method: str, *given: Any, **named: Any) -> Any:
        self.asked.append(method)
        return self._system.ask(method, *given, **named)


class Rig:
    """A deployment, who pushes to it, and the address of its console."""

    def __init__(self, stack: ExitStack) -> None:
        self.system = deployed()
        stack.callback(lambda: self.system.ask("down"))
        server = Server(Source(lambda: self.system), HOST, 0, Tokens.of(control=TOKEN))
        stack.callback(server.stop)
        server.start()
        self.url = server.url

    def status(self) -> dict[str, Any]:
        """Of its only domain."""
        found: dict[str, Any] = self.system.ask("status")["domains"][0]
        return found


def deployed() -> Counted:
    """The demonstration's plan with one actor for all stations, and with metrics."""
    table = read_table(PLAN)
    setup = Setup.read({**table["live"], "actors": 1, "metrics": 0})
    return Counted(NAME, up(table, str(PLAN.parent), str(PLAN), NAME, setup, replace=True))


@contextmanager
def rig() -> Iterator[Rig]:
    """All of it, on the Ray that this process is part of."""
    with ExitStack() as stack:
        yield Rig(stack)


@contextmanager
def load(system: Counted) -> Iterator[None]:
    """Rows are pushed, when they are due, until this is over."""
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
    rows = Load(Recipe.of(PLAN, duration=LENGTH))
    begun, grains = stopwatch(), round(LENGTH / EVERY)
    with suppress(DsmsError), dsms.connect(door) as client:  # the system may be taken down meanwhile
        for number in count():
            if wait(max(0.0, begun + (number + 1) * EVERY - stopwatch())):
                return
            since = number % grains * EVERY
            for part in rows.rows(since, since + EVERY):
                client.push(part.stream, part.batch.columns)


def metric(system: Counted, name: str) -> dict[str, float]:
    """The samples of a metric as it is served, by its labels."""
    with urlopen(system.ask("status")["metrics"], timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{")}
