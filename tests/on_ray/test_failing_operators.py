"""Operators that raise, always fail, or hang, on a real cluster: what is reported, and what continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dsms
from actors.control.deploy import up
from actors.deployment.actor_handles import wait_until
from dsms.live.monitor.status import DeploymentStatus, DomainStatus, QuarantineStatus

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]
WAIT = 60.0
FUNCTIONS = """
import time

def positive(batch):
    if (batch.columns["x"] < 0).any():
        raise ValueError("negative")
    return batch

def quick(batch):
    if (batch.columns["x"] == 13).any():
        time.sleep(3600)
    return batch
"""


class FailingDeployment:
    """A deployment in which `well` works, `picky` raises on some rows, and `slow` hangs on some."""

    def __init__(self, ray: Any, folder: Path, name: str = "failing", **live: Any) -> None:
        (folder / "odd_functions.py").write_text(FUNCTIONS)
        self.letters = folder / "letters/p.0.dead.jsonl"
        table = {
            "streams": {"s": {"schema": {"x": "int64"}}, "t": {"schema": {"x": "int64"}}},
            "queries": {
                "well": {"cql": "SELECT x FROM s"},
                "picky": {"from": "s", "operators": [{"name": "p", "function": "odd_functions:positive"}]},
                "slow": {"from": "t", "operators": [{"name": "q", "function": "odd_functions:quick"}]},
            },
            "live": {"port": 0, "actors": 3, "patience": 1.0, "dead_letters": "letters", **live},
        }
        self._get = ray.get
        self.handle = up(table, str(folder), "p.toml", name)
        self.client = dsms.connect(self.ask("identity")["gateways"][0])
        self.found: dict[str, list[int]] = {}
        for query in ("well", "picky", "slow"):
            self.client.subscribe(query, 0, self._taker(query))

    def _taker(self, query: str) -> Callable[[dsms.Batch], None]:
        mine = self.found.setdefault(query, [])
        return lambda batch: mine.extend(batch.columns["x"].tolist())

    def ask(self, method: str, *arguments: Any) -> Any:
        return self._get(getattr(self.handle, method).remote(*arguments), timeout=WAIT)

    def domain(self) -> DomainStatus:
        status: DeploymentStatus = self.ask("status")
        return status.domains[0]

    def push(self, stream: str, *values: int) -> None:
        self.client.push(stream, {"x": list(values)})
        self.client.flush(WAIT)
        assert wait_until(lambda: not self.domain().held, WAIT)

    def come(self, query: str, count: int) -> list[int]:
        wait_until(lambda: len(self.found[query]) >= count, WAIT)
        return self.found[query]


@pytest.fixture(scope="module")
def live(ray_cluster, tmp_path_factory):
    found = FailingDeployment(ray_cluster, tmp_path_factory.mktemp("failing"))
    yield found
    found.client.close()
    found.ask("down")


def test_bad_rows_become_dead_letters_with_the_traceback_and_the_query_continues(live: FailingDeployment) -> None:
    live.push("s", 1, 2, -3, 4, -5, 6)
    assert live.come("picky", 4) == [1, 2, 4, 6]
    assert live.come("well", 6) == [1, 2, -3, 4, -5, 6]
    letters = [json.loads(line) for line in live.letters.read_text().splitlines()]
    assert [(one["where"], one["reason"], one["row"]) for one in letters] == [
        ("p", "ValueError: negative", {"x": -3}),
        ("p", "ValueError: negative", {"x": -5}),
    ]
    assert 'raise ValueError("negative")' in letters[0]["trace"]


def test_a_query_that_always_fails_is_quarantined_until_it_is_lifted(live: FailingDeployment) -> None:
    before = len(live.found["well"])
    for _ in range(10):
        live.push("s", -1)
    assert live.come("well", before + 10)[before:] == [-1] * 10
    assert wait_until(lambda: bool(live.domain().quarantine), WAIT)
    assert [one.query for one in live.domain().quarantine] == ["picky"]
    assert live.ask("lift", "picky") == ["picky"]
    live.push("s", 7)
    assert live.come("picky", 5) == [1, 2, 4, 6, 7]


def test_a_hanging_operator_is_named_and_its_process_killed(live: FailingDeployment) -> None:
    live.client.push("t", {"x": [13]})
    assert wait_until(lambda: live.domain().watchdog.culprit == "q", WAIT)
    assert "operator 'q' (host" in live.domain().watchdog.alert
    assert wait_until(lambda: live.domain().state == "failed", WAIT)
    assert "does not return, and was killed" in live.domain().error


def test_a_durable_domain_is_rebuilt_and_only_the_hanging_query_is_quarantined(ray_cluster, tmp_path: Path) -> None:
    live = FailingDeployment(ray_cluster, tmp_path, "hanging", durable="kept", checkpoint=0.3)
    try:
        live.push("s", 1, 2)
        live.client.push("t", {"x": [13]})
        assert wait_until(lambda: bool(live.domain().quarantine), WAIT)
        assert live.domain().quarantine == [
            QuarantineStatus("slow", "operator 'q' did not return, so its process was killed")
        ]
        live.push("s", 3, 4)
        assert live.come("well", 4) == [1, 2, 3, 4]
        assert live.come("picky", 4) == [1, 2, 3, 4]
        assert live.ask("durability")["recoveries"] == 1
        assert live.ask("lift", "slow") == ["slow"]
        live.push("t", 5)
        assert live.come("slow", 1) == [5]
    finally:
        live.client.close()
        live.ask("down")
