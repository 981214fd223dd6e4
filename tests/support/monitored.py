"""Runs an engine under a monitor, on a clock that tests move by hand."""

from __future__ import annotations

from typing import Any

from dsms.clock import RealClock
from dsms.engine.engine import Engine
from dsms.live.monitor.monitor import Monitor
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named


def table(at: list[float] | None = None, **run: Any) -> dict[str, Any]:
    """p: cost 2, passes all; q: cost 4, passes all; both read every tuple."""
    return {
        "streams": {"s": {"arrivals": {"kind": "list", "at": at or [1, 2]}}},
        "queries": {
            "p": {"from": "s", "operators": [{"name": "a", "cost": 2}]},
            "q": {"from": "s", "weight": 3, "operators": [{"name": "b", "cost": 4}]},
        },
        "run": run,
    }


def watched(plan: Plan, policy: str = "fifo", **options: Any) -> tuple[Monitor, Engine]:
    watch = Monitor(plan)
    return watch, Engine(plan, policy_named(policy), observers=watch.observers, **options)


class Hand(RealClock):
    """A real clock that tests move by hand; work takes its declared time."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def wait_until(self, instant: float) -> None:
        self.at = max(self.at, instant)

    def spend(self, cost: float) -> float:
        self.at += 2 * cost  # half of a turn is waiting for answers
        return self.at
