"""A live system without Ray: a status with plausible figures, and a plain object with the Deployment's methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from support.paths import ROOT

import dsms
from actors.cluster.cluster_exit import leave_cluster_on_exit
from dsms.errors import DsmsError
from dsms.live.monitor.status import (
    DeploymentStatus,
    DomainStatus,
    GatewayStatus,
    LatencyStatus,
    OperatorStatus,
    PhaseStatus,
    QueryStatus,
    StreamStatus,
)

LATENCY = LatencyStatus(mean=0.002, p50=0.0015, p99=0.02)


def station(name: str, queue: int, actor: int = 0) -> OperatorStatus:
    return OperatorStatus(
        name=name, query=name.partition(".")[0], actor=actor, queue=queue,
        rate_in=1234.5, rate_out=12.345, cost=2.5e-6, selectivity=0.25, busy=0.125,
    )  # fmt: skip


def phase(policy: str, since: float, until: float | None = None, **more: Any) -> PhaseStatus:
    return PhaseStatus(policy, since, until, **{"reason": "start", "turns": 7, "results": 9, **more})


def domain(name: str = "0", **more: Any) -> DomainStatus:
    figures = {
        "node": "here", "policy": "chain", "decides": "chain", "clock": "wall", "now": 200.0, "held": 1500,
        "held_bytes": 48_000, "turns": 1234, "swaps": 1, "utilisation": 0.71, "idle_with_work": 0.034,
        "latency": LATENCY, "staleness": 0.25, "qos": "memory=1", "streams": [StreamStatus("bids", 5000, 100.0)],
        "queries": [
            QueryStatus(f"high{name}", 2.0, 321, 5.5, LATENCY, 0.1, shed=12),
            QueryStatus(f"busy{name}", 1.0, 0),
        ],
        "stations": [station(f"high{name}.where", 30), station(f"busy{name}.group", 1200, 1)],
        "phases": [phase("fifo", 0.0, 60.0), phase("chain", 60.0, reason="[asked] for", swap_seconds=0.0042)],
    }  # fmt: skip
    return DomainStatus(domain=name, **{**figures, **more})


def status_of(*domains: DomainStatus) -> DeploymentStatus:
    gateway = GatewayStatus("127.0.0.1:7411", connections=2, rows=5000, bytes=160_000, rejected=3, subscribers=1)
    return DeploymentStatus("dsms", 1e9, "0.1.0", gateways=[gateway], domains=list(domains))


class FakeDeployment:
    """The Deployment's methods, and what was asked of them."""

    def __init__(self, *domains: DomainStatus, name: str = "dsms") -> None:
        self.name = name
        self.domains = list(domains or (domain(),))
        self.asked: list[tuple[Any, ...]] = []

    def status(self) -> DeploymentStatus:
        return replace(status_of(*self.domains), name=self.name)

    def swap(self, policy: str, reason: str = "", domain: str | None = None) -> list[dict[str, Any]]:
        self.asked.append(("swap", policy, reason, domain))
        return [
            {"domain": one.domain, "before": one.policy, "after": policy, "seconds": 0.0123} for one in self.domains
        ]

    def require(self, qos: str, domain: str | None = None) -> None:
        self.asked.append(("require", qos, domain))
        self.domains = [replace(one, qos=qos) for one in self.domains]

    def weigh(self, query: str, weight: float) -> None:
        self.asked.append(("weigh", query, weight))
        self.domains = [
            replace(one, queries=[replace(q, weight=weight) if q.name == query else q for q in one.queries])
            for one in self.domains
        ]

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

    def lift(self, query: str) -> list[str]:
        self.asked.append(("lift", query))
        return [query, "busy0"]

    def move(self, query: str, domain: str) -> dict[str, Any]:
        self.asked.append(("move", query, domain))
        return {"queries": [query, "busy0"], "seconds": 0.25}

    def down(self) -> None:
        self.asked.append(("down",))


class FakeCluster:
    """A cluster on which at most one deployment runs; `log` is what was done to it."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.diff_with_checkpoint: Callable[..., Any] = lambda *given: None  # what becomes of what is stored: nothing
        self.running: dict[str, FakeDeployment] = {"dsms": FakeDeployment()}

    def connect(self, address: str, timeout: float = 10.0) -> None:
        self.log.append(("connect", address))
        if address == "nowhere:1":
            raise DsmsError("no Ray cluster at nowhere:1")

    def start_local_ray(self, budgets: int) -> None:
        self.log.append(("local", budgets))

    def check_reachable(self) -> None:
        """It is."""

    leave_cluster_on_exit = staticmethod(leave_cluster_on_exit)

    def disconnect(self) -> None:
        self.log.append("disconnect")

    def get_deployment(self, name: str) -> FakeDeployment:
        if name not in self.running:
            raise DsmsError(f"no deployment {name!r}; there are {sorted(self.running)}")
        return self.running[name]

    def list_deployments(self) -> list[str]:
        return sorted(self.running)

    def tear_down(self, name: str) -> list[str]:
        self.log.append(("tear_down", name))
        del self.running[name]
        return [f"dsms:{name}"]

    def up(
        self, table: dict[str, Any], folder: str, file: str, *, name: str, progress: Callable[[str], None], **how: Any
    ) -> FakeDeployment:
        progress("starting 8 stations")
        self.log.append((name, list(table["queries"]), folder, file, how))
        self.running[name] = FakeDeployment(name=name)
        return self.running[name]


def collapse_spaces(text: str) -> list[str]:
    """Its lines, one space between words."""
    return [" ".join(line.split()) for line in text.splitlines()]
