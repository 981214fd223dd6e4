"""Plans on a Ray of the benchmark's own, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from benchmarks.ours import SCHEMA

from actors import cluster
from actors.deployment import up
from dsms.live.setup import Setup

FOLDER = Path(__file__).parent.parent
FILTERS = ("price", "bidder", "auction", "even")
BUDGETS = 4  # deployments at a time


class Deployed:
    """A plan at work."""

    def __init__(self, table: Mapping[str, Any], name: str, setup: Setup) -> None:
        self._handle = up(table, str(FOLDER), "", name, setup)
        self.address = str(self.status()["gateways"][0]["address"])

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = ray.get(self._handle.status.remote())
        return found

    def domain(self) -> dict[str, Any]:
        """The status of its only domain."""
        (found,) = self.status()["domains"]
        assert found["error"] is None, found["error"]
        return dict(found)

    def swap(self, policy: str) -> None:
        ray.get(self._handle.swap.remote(policy))

    def checkpoint(self) -> dict[str, Any]:
        """Save it now; what that took."""
        found: dict[str, Any] = ray.get(self._handle.checkpoint.remote())
        return found

    def down(self) -> None:
        ray.get(self._handle.down.remote())


@contextmanager
def own_ray() -> Iterator[None]:
    """A Ray that ends with this."""
    cluster.local(BUDGETS)
    try:
        yield
    finally:
        cluster.disconnect()


@contextmanager
def deployed(table: Mapping[str, Any], name: str, **live: Any) -> Iterator[Deployed]:
    """A plan under a name, and what its [live] table says."""
    made = Deployed(table, name, Setup.read({"port": 0, **live}))
    try:
        yield made
    finally:
        made.down()


def four_filters() -> dict[str, Any]:
    """FC as one query of four operators: four stations."""
    return _plan({"q": {"from": "bids", "operators": [_operator(name) for name in FILTERS]}})


def many_heavy(queries: int) -> dict[str, Any]:
    """So many queries over one stream, each with one costly operator."""
    return _plan({f"q{n}": {"from": "bids", "operators": [_operator("heavy", f"h{n}")]} for n in range(queries)})


def many_operators(queries: int) -> dict[str, Any]:
    """Three times as many operators as queries."""
    return _plan(
        {f"q{n}": {"from": "bids", "operators": [_operator(f, f"{f}{n}") for f in FILTERS[:3]]} for n in range(queries)}
    )


def _plan(queries: Mapping[str, Any]) -> dict[str, Any]:
    return {"streams": {"bids": {"schema": SCHEMA}}, "queries": dict(queries)}


def _operator(function: str, name: str = "") -> dict[str, str]:
    return {"name": name or function, "function": f"benchmarks.filters:{function}"}
