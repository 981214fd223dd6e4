"""Runs a real Prometheus beside a test, as deploy/prometheus does, and queries it."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from support.paths import ROOT

SCRIPT = ROOT / "deploy/prometheus"
START_TIMEOUT_S = 30.0
SCRAPE_TIMEOUT_S = 10.0
Series = list[dict[str, Any]]  # each with `metric`, its labels, and `value` or `values`


class Prometheus:
    """A Prometheus server, queried over HTTP like Grafana does."""

    def __init__(self, address: str) -> None:
        self.address = address

    def now(self, expression: str) -> Series:
        """The value of an expression now; waits for the next scrape if the last one lacks it."""
        begun = time.monotonic()
        while not (found := self._ask("query", query=expression)) and time.monotonic() - begun < SCRAPE_TIMEOUT_S:
            time.sleep(0.2)
        return found

    def value(self, expression: str) -> float:
        """The value of an expression that has one series."""
        [series] = self.now(expression)
        return float(series["value"][1])

    def between(self, expression: str, start: float, end: float, step: float = 1.0) -> Series:
        """The values of an expression over time."""
        return self._ask("query_range", query=expression, start=start, end=end, step=step)

    def rules(self) -> list[dict[str, Any]]:
        """All rules with their health."""
        with urllib.request.urlopen(f"{self.address}/api/v1/rules", timeout=START_TIMEOUT_S) as answer:
            return [rule for group in json.load(answer)["data"]["groups"] for rule in group["rules"]]

    def _ask(self, what: str, **parameters: Any) -> Series:
        body = urllib.parse.urlencode(parameters).encode()
        try:
            with urllib.request.urlopen(f"{self.address}/api/v1/{what}", body, timeout=START_TIMEOUT_S) as answer:
                found: Series = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters['query']}: {json.load(error)['error']}") from None
        return found


@contextmanager
def run_prometheus(metrics: str, ray: Sequence[str] = ()) -> Iterator[Prometheus]:
    """Scrapes a deployment and Ray's endpoints, `host:port` each, once a second; leaves nothing behind."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [SCRIPT, "--metrics", metrics, "--port", str(port), "--interval", "1s"]
    for each in ray:
        words += ["--ray", each]
    with tempfile.TemporaryFile("w+") as said:
        running = subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT, text=True)
        try:
            yield Prometheus(f"http://127.0.0.1:{_listening(running, port, said)}")
        finally:
            running.terminate()
            running.wait(START_TIMEOUT_S)


def _listening(running: subprocess.Popen[str], port: int, said: Any) -> int:
    begun = time.monotonic()
    while time.monotonic() - begun < START_TIMEOUT_S:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=START_TIMEOUT_S).close()
        except OSError:
            time.sleep(0.1)
        else:
            return port
        if running.poll() is not None:
            break
    said.seek(0)
    raise AssertionError(f"no Prometheus at port {port}: {said.read()}")
