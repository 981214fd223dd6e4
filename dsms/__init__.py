"""A data stream management system with interchangeable scheduling policies, and measurements of their effect."""

import importlib
from typing import TYPE_CHECKING, Any

from dsms.policies.registry import policies, policy_named  # here: the package `dsms.policies` has the same name

if TYPE_CHECKING:
    from dsms.advice.dataflows import dataflows
    from dsms.advice.explain import Explanation, explain
    from dsms.advice.recommend import Recommendation, recommend
    from dsms.advice.why import Decision, why
    from dsms.clock import Clock, PacedClock, VirtualClock, WallClock
    from dsms.data.batch import Batch
    from dsms.engine.engine import Engine
    from dsms.engine.observers import Observer
    from dsms.engine.policy import Policy
    from dsms.errors import DsmsError, PlanError, PolicyError
    from dsms.net.client import connect
    from dsms.papers.reproduce import reproduce
    from dsms.plan.graph import Plan
    from dsms.plan.segment import Segment, Share
    from dsms.query.fluent import stream
    from dsms.query.plan_file import plan_from, read_plan
    from dsms.run_plan import Report, run
    from dsms.simulation import Run, simulate

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

# Each name is imported when it is first used: a command or an actor then loads only what it needs.
MODULES = {
    "dsms.advice.dataflows": ("dataflows",),
    "dsms.advice.explain": ("Explanation", "explain"),
    "dsms.advice.recommend": ("Recommendation", "recommend"),
    "dsms.advice.why": ("Decision", "why"),
    "dsms.clock": ("Clock", "PacedClock", "VirtualClock", "WallClock"),
    "dsms.data.batch": ("Batch",),
    "dsms.engine.engine": ("Engine",),
    "dsms.engine.observers": ("Observer",),
    "dsms.engine.policy": ("Policy",),
    "dsms.errors": ("DsmsError", "PlanError", "PolicyError"),
    "dsms.net.client": ("connect",),
    "dsms.papers.reproduce": ("reproduce",),
    "dsms.plan.graph": ("Plan",),
    "dsms.plan.segment": ("Segment", "Share"),
    "dsms.query.fluent": ("stream",),
    "dsms.query.plan_file": ("plan_from", "read_plan"),
    "dsms.run_plan": ("Report", "run"),
    "dsms.simulation": ("Run", "simulate"),
}
LAZY_NAMES = {name: module for module, names in MODULES.items() for name in names}


if not TYPE_CHECKING:  # which then refuses names that do not exist

    def __getattr__(name: str) -> Any:
        if name not in LAZY_NAMES:
            raise AttributeError(f"module 'dsms' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(LAZY_NAMES[name]), name)
        return value
