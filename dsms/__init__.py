"""A data stream management system whose scheduler is a first-class, swappable, measurable part."""

import importlib
from typing import TYPE_CHECKING, Any

from dsms.advice.explain import Explanation, explain
from dsms.advice.recommend import Recommendation, recommend
from dsms.advice.why import Decision, why
from dsms.batch import Batch
from dsms.clock import Clock, PacedClock, VirtualClock, WallClock
from dsms.engine import Engine
from dsms.errors import DsmsError, PlanError, PolicyError
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.planfile import plan_from, read_plan
from dsms.policies.base import Policy
from dsms.policies.registry import policies, policy_named
from dsms.segment import Segment, Share
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

# What reads files or parses queries is loaded when it is first asked for: those who simulate need not wait for it.
LATER = {
    "Report": "dsms.execution",
    "connect": "dsms.client",
    "dataflows": "dsms.advice.dataflows",
    "reproduce": "dsms.papers.reproduce",
    "run": "dsms.execution",
    "stream": "dsms.fluent",
}

if TYPE_CHECKING:
    from dsms.advice.dataflows import dataflows
    from dsms.client import connect
    from dsms.execution import Report, run
    from dsms.fluent import stream
    from dsms.papers.reproduce import reproduce


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'dsms' has no attribute {name!r}")
    return getattr(importlib.import_module(LATER[name]), name)
