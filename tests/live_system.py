"""A live system without Ray: a status such as it tells, and the Deployment's methods played by a plain object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dsms
from dsms.errors import DsmsError

ROOT = Path(__file__).parent.parent


def station(name: str, queue: int, actor: int = 0) -> dict[str, Any]:
    figures = {"rate_in": 1234.5, "rate_out": 12.345, "cost": 2.5e-6, "selectivity": 0.25, "busy": 0.125}
    return {"name": name, "query": name.partition(".")[0], "actor": actor, "queue": queue, "priority": None, **figures}


def phase(policy: str, since: float, until: float | None = None, **more: Any) -> dict[str, Any]:
    figures = dict.fromkeys(("swap_seconds", "memory_mean", "memory_max", "latency_mean", "latency_p99", "staleness"))
    return {
        "policy": policy,
        "since": since,
        "until": until,
        "reason": "start",
        "turns": 7,
        "results": 9,
        **figures,
        **more,
    }


def domain(name: str = "0", **more: Any) -> dict[str, Any]:
    late = {"mean": 0.002, "p50": 0.0015, "p99": 0.02}
    return {
        "domain": name, "node": "here", "policy": "chain", "decides": "chain", "state": "running", "error": None,
        "clock": "wall", "budget": 1.0, "now": 200.0, "held": 1500, "held_bytes": 48_000, "turns": 1234, "swaps": 1,
        "utilisation": 0.71, "idle_with_work": 0.034, "latency": late, "staleness": 0.25, "qos": "memory=1",
        "streams": [{"name": "bids", "rows": 5000, "rate": 100.0}],
        "queries": [
            {"name": f"high{name}", "weight": 2.0, "results": 321, "rate": 5.5, "latency": late, "staleness": 0.1,
             "shed": 12},
            {"name": f"busy{name}", "weight": 1.0, "results": 0, "rate": None, "latency": None, "staleness": None},
        ],
        "stations": [station(f"high{name}.where", 30), station(f"busy{name}.group", 1200, 1)],
        "phases": [phase("fifo", 0.0, 60.0), phase("chain", 60.0, reason="[asked] for", swap_seconds=0.0042)],
        **more,
    }  # fmt: skip


def status_of(*domains: dict[str, Any]) -> dict[str, Any]:
    door = {
        "address": "127.0.0.1:7411",
        "connections": 2,
        "rows": 5000,
        "bytes": 160_000,
        "rejected": 3,
        "subscribers": 1,
    }
    return {
        "name": "dsms",
        "since": 1e9,
        "version": "0.1.0",
        "gateways": [door],
        "outlet": {},
        "domains": list(domains),
    }


class FakeDeployment:
    """The Deployment's methods, and what was asked of them."""

    def __init__(self, *domains: dict[str, Any], name: str = "dsms") -> None:
        self.name = name
        self.domains = domains or (domain(),)
        self.asked: list[tuple[Any, ...]] = []

    def status(self) -> dict[str, Any]:
        return {**status_of(*self.domains), "name": self.name}

    def swap(self, policy: str, reason: str = "", domain: str | None = None) -> list[dict[str, Any]]:
        self.asked.append(("swap", policy, reason, domain))
        return [
            {"domain": one["domain"], "before": one["policy"], "after": policy, "seconds": 0.0123}
            for one in self.domains
        ]

    def require(self, qos: str, domain: str | None = None) -> None:
        self.asked.append(("require", qos, domain))
        for one in self.domains:
            one["qos"] = qos

    def weigh(self, query: str, weight: float) -> None:
        self.asked.append(("weigh", query, weight))
        for each in (each for one in self.domains for each in one["queries"] if each["name"] == query):
            each["weight"] = weight

    def why(self, count: int = 1, domain: str | None = None) -> list[dict[str, Any]]:
        self.asked.append(("why", count, domain))
        found = dsms.why(ROOT / "tests/plans/chain-example.toml", "chain", 2.5).to_json()
        return [{**found, "domain": "0"}] * count

    def checkpoint(self) -> dict[str, Any]:
        self.asked.append(("checkpoint",))
        return {"number": 7, "bytes": 12_345, "seconds": 0.25, "pause": 0.004, "at": 1e9}

    def pause(self, domain: str | None = None) -> None:
        self.asked.append(("pause", domain))

    def resume(self, domain: str | None = None) -> None:
        self.asked.append(("resume", domain))

    def add(self, table: dict[str, Any], folder: str, file: str) -> list[str]:
        self.asked.append(("add", table, folder, file))
        return list(table["queries"])

    def remove(self, query: str) -> None:
        self.asked.append(("remove", query))
        if query not in ("high0", "busy0"):
            raise DsmsError(f"no query {query!r}; there are ['busy0', 'high0']")

    def readmit(self, query: str) -> list[str]:
        self.asked.append(("readmit", query))
        return [query, "busy0"]

    def move(self, query: str, domain: str) -> dict[str, Any]:
        self.asked.append(("move", query, domain))
        return {"queries": [query, "busy0"], "seconds": 0.25}

    def down(self) -> None:
        self.asked.append(("down",))


class Live:
    """A cluster on which at most one deployment runs; `log` is what was done to it."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.changes = lambda *given: None  # what becomes of what is stored: nothing
        self.running: dict[str, FakeDeployment] = {"dsms": FakeDeployment()}

    def connect(self, address: str, timeout: float = 10.0) -> None:
        self.log.append(("connect", address))
        if address == "nowhere:1":
            raise DsmsError("no Ray cluster at nowhere:1")

    def local(self, budgets: int) -> None:
        self.log.append(("local", budgets))

    def reachable(self) -> None:
        """It is."""

    def disconnect(self) -> None:
        self.log.append("disconnect")

    def deployment(self, name: str) -> FakeDeployment:
        if name not in self.running:
            raise DsmsError(f"no deployment {name!r}; there are {sorted(self.running)}")
        return self.running[name]

    def deployments(self) -> list[str]:
        return sorted(self.running)

    def sweep(self, name: str) -> list[str]:
        self.log.append(("sweep", name))
        del self.running[name]
        return [f"dsms:{name}"]

    def up(
        self, table: dict[str, Any], folder: str, file: str, *, name: str, progress: Callable[[str], None], **how: Any
    ) -> FakeDeployment:
        progress("starting 8 stations")
        self.log.append((name, list(table["queries"]), folder, file, how))
        self.running[name] = FakeDeployment(name=name)
        return self.running[name]


def squeezed(text: str) -> list[str]:
    """Its lines, one space between words."""
    return [" ".join(line.split()) for line in text.splitlines()]
