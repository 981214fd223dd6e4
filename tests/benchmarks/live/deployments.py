"""Starts the live plans that benchmarks and long runs measure, side by side on one Ray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ray
from benchmarks.queries.ours import SCHEMA
from support.paths import TESTS

from actors.cluster import cluster
from actors.control.deploy import up
from actors.rpc.messages import get_result, send
from dsms.config.live import LiveConfig
from dsms.live.monitor.status import DeploymentStatus, DomainStatus

FOLDER = TESTS
FILTERS = ("price", "bidder", "auction", "even")
BUDGETS = 4  # deployments at once


class BenchDeployment:
    """A running plan, asked for what benchmarks measure."""

    def __init__(self, table: Mapping[str, Any], name: str, setup: LiveConfig) -> None:
        self._handle = up(table, str(FOLDER), "", name, setup)
        self.address = str(self.status().gateways[0].address)

    def status(self) -> DeploymentStatus:
        return get_result(send(self._handle.status))

    def domain(self) -> DomainStatus:
        """The status of its only domain."""
        (found,) = self.status().domains
        assert found.error is None, found.error
        return found

    def swap(self, policy: str) -> None:
        get_result(send(self._handle.swap, policy))

    def checkpoint(self) -> dict[str, Any]:
        """Take a checkpoint now; answers its size, its pause and its duration."""
        return get_result(send(self._handle.checkpoint))

    def down(self) -> None:
        get_result(send(self._handle.down))


@contextmanager
def run_ray() -> Iterator[None]:
    """The Ray that this process is connected to, or one that ends with this block."""
    if ray.is_initialized():
        yield
        return
    cluster.start_local_ray(BUDGETS)
    try:
        yield
    finally:
        cluster.disconnect()


@contextmanager
def deploy(table: Mapping[str, Any], name: str, **live: Any) -> Iterator[BenchDeployment]:
    """Run a plan under a name, with these settings of its [live] table."""
    deployment = BenchDeployment(table, name, LiveConfig.read({"port": 0, **live}))
    try:
        yield deployment
    finally:
        deployment.down()


def four_filters() -> dict[str, Any]:
    """Return FC as one query of four operators: four stations."""
    return _plan({"q": {"from": "bids", "operators": [_operator(name) for name in FILTERS]}})


def many_heavy(queries: int) -> dict[str, Any]:
    """Return a plan of queries over one stream, each with one costly operator."""
    return _plan({f"q{n}": {"from": "bids", "operators": [_operator("heavy", f"h{n}")]} for n in range(queries)})


def many_operators(queries: int) -> dict[str, Any]:
    """Return a plan with three operators in each query."""
    return _plan(
        {f"q{n}": {"from": "bids", "operators": [_operator(f, f"{f}{n}") for f in FILTERS[:3]]} for n in range(queries)}
    )


def _plan(queries: Mapping[str, Any]) -> dict[str, Any]:
    return {"streams": {"bids": {"schema": SCHEMA}}, "queries": dict(queries)}


def _operator(function: str, name: str = "") -> dict[str, str]:
    return {"name": name or function, "function": f"benchmarks.live.filters:{function}"}
