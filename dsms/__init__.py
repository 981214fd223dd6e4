"""A data stream management system with interchangeable scheduling policies, and measurements of their effect."""

import importlib
from typing import TYPE_CHECKING, Any

from dsms.advice.explain import Explanation, explain
from dsms.advice.recommend import Recommendation, recommend
from dsms.advice.why import Decision, why
from dsms.clock import Clock, PacedClock, VirtualClock, WallClock
from dsms.data.batch import Batch
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.errors import DsmsError, PlanError, PolicyError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment, Share
from dsms.policies.registry import policies, policy_named
from dsms.query.plan_file import plan_from, read_plan
from dsms.simulate import Run, simulate

__all__ = [
    "Batch",
    "Clock",
    "Decision",
    "DsmsError",
    "Engine",
    "Explanation",
    "Observer",
    "PacedClock",
    "Plan",
    "PlanError",
    "Policy",
    "PolicyError",
    "Recommendation",
    "Report",
    "Run",
    "Segment",
    "Share",
    "VirtualClock",
    "WallClock",
    "connect",
    "dataflows",
    "explain",
    "plan_from",
    "policies",
    "policy_named",
    "read_plan",
    "recommend",
    "reproduce",
    "run",
    "simulate",
    "stream",
    "why",
]  # fmt: skip

# Loaded on first use: pyarrow and sqlglot are slow to import, and simulations need neither.
LAZY_NAMES = {
    "Report": "dsms.run_plan",
    "connect": "dsms.net.client",
    "dataflows": "dsms.advice.dataflows",
    "reproduce": "dsms.papers.reproduce",
    "run": "dsms.run_plan",
    "stream": "dsms.query.fluent",
}

if TYPE_CHECKING:
    from dsms.advice.dataflows import dataflows
    from dsms.net.client import connect
    from dsms.papers.reproduce import reproduce
    from dsms.query.fluent import stream
    from dsms.run_plan import Report, run


def __getattr__(name: str) -> Any:
    if name not in LAZY_NAMES:
        raise AttributeError(f"module 'dsms' has no attribute {name!r}")
    return getattr(importlib.import_module(LAZY_NAMES[name]), name)
