"""Alternative readings of the FAS-MCQ paper: the settings of the test-bed or the policies that each one changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from dsms.engine.policy import Policy
from dsms.errors import DsmsError, existing
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment, Share
from dsms.policies.freshness import Freshness
from dsms.policies.query_policy import QueryPolicy
from dsms.policies.rate_based import RateBased
from dsms.policies.registry import policy_named

CHEAPEST = 1.0  # cost of the cheapest operator


class ByOperator(QueryPolicy):
    """Schedules each operator on its own, by its own selectivity and cost, instead of whole queries."""

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_operator()


class AllPending(QueryPolicy):
    """Lets a turn take all tuples that are pending when it begins."""

    def share(self, segment: Segment) -> Share | None:
        return Share(segment.pending, math.inf)


@dataclass
class FreshnessByOperator(ByOperator, Freshness):
    """FAS-MCQ over operators."""


@dataclass
class RateBasedByOperator(ByOperator, RateBased):
    """RB-MCQ over operators."""


@dataclass
class FreshnessOfAll(AllPending, Freshness):
    """FAS-MCQ with turns that take all pending tuples."""


@dataclass
class RateBasedOfAll(AllPending, RateBased):
    """RB-MCQ with turns that take all pending tuples."""


PolicyClasses = tuple[type[Freshness], type[RateBased]]


@dataclass(frozen=True)
class PaperReading:
    """One reading of the paper: how it differs from the plain one."""

    text: str
    setting: dict[str, Any] = field(default_factory=dict)  # fields of Setting that differ
    ties: str = "oldest"
    classes: PolicyClasses = (Freshness, RateBased)

    def policy(self, text: str) -> Policy:
        """The policy that a text names, as this reading implements it."""
        policy = policy_named(text)
        freshness, rate_based = self.classes
        if isinstance(policy, Freshness):
            return freshness(ties=self.ties, beta=policy.beta)
        if isinstance(policy, RateBased):
            return rate_based(ties=policy.ties if self.ties == "oldest" else self.ties)
        return policy


PLAIN = "plain"
READINGS = {
    PLAIN: PaperReading("as the paper reads"),
    "operator": PaperReading("operators scheduled, not queries", classes=(FreshnessByOperator, RateBasedByOperator)),
    "pending": PaperReading("all pending updates in one turn", classes=(FreshnessOfAll, RateBasedOfAll)),
    "shared": PaperReading("one buffer for all readers of a stream", {"run": {"buffers": "shared"}}),
    "apart": PaperReading("an equal part of the load by each stream", {"apart": True}),
    "ties": PaperReading("ties to the lowest query number", ties="query"),
    "fine": PaperReading("selectivities from a continuum", {"steps": 0}),
    "whole": PaperReading("the selectivity drawn is that of the whole query", {"whole": True}),
    "skewed": PaperReading("selectivities skewed towards 1, Zipf 2.5", {"zipf": 2.5}),
    "cost": PaperReading("scheduling operations cost", {"run": {"scheduling_cost": CHEAPEST}}),
    "tenth": PaperReading("scheduling operations cost a tenth", {"run": {"scheduling_cost": CHEAPEST / 10}}),
    "weighted": PaperReading("queries weigh as much as they have users", {"weighted": True}),
}
OTHERS = ("skewed", "whole", "operator", "pending", "shared", "apart", "ties", "fine", "cost", "tenth")


def find_reading(name: str) -> PaperReading:
    """The reading of this name."""
    if name not in READINGS:
        raise DsmsError(f"no reading {name!r}{existing(name, READINGS)}")
    return READINGS[name]
