"""A data stream management system whose scheduler is a first-class, swappable, measurable part."""

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
    "Batch", "Clock", "Decision", "DsmsError", "Engine", "Explanation", "Observer", "PacedClock", "Plan", "PlanError",
    "Policy", "PolicyError", "Recommendation", "Run", "Segment", "Share", "VirtualClock", "WallClock", "explain",
    "plan_from", "policies", "policy_named", "read_plan", "recommend", "simulate", "why",
]  # fmt: skip
