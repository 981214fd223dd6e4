"""Other ways to read the paper: what of the test-bed, or of the policies, is then otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import DsmsError, existing
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.policies.by_query import QueryLevel
from dsms.policies.freshness import Freshness
from dsms.policies.rate_based import RateBased
from dsms.policies.registry import policy_named
from dsms.segment import Segment, Share

CHEAPEST = 1.0  # what the cheapest operator takes


class ByOperator(QueryLevel):
    """Each operator is scheduled on its own, by its own selectivity and cost."""

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_operator()


class AllPending(QueryLevel):
    """A turn takes all that is pending when it begins."""

    def share(self, segment: Segment) -> Share | None:
        return Share(segment.pending, math.inf)


@dataclass
class FreshnessByOperator(ByOperator, Freshness):
    pass


@dataclass
class RateBasedByOperator(ByOperator, RateBased):
    pass


@dataclass
class FreshnessOfAll(AllPending, Freshness):
    pass


@dataclass
class RateBasedOfAll(AllPending, RateBased):
    pass


Kinds = tuple[type[Freshness], type[RateBased]]


@dataclass(frozen=True)
class Reading:
    """What is otherwise."""

    text: str
    setting: dict[str, Any] = field(default_factory=dict)
    ties: str = "oldest"
    kinds: Kinds = (Freshness, RateBased)

    def policy(self, text: str) -> Policy:
        """The policy of this name, as it is read here."""
        policy = policy_named(text)
        freshness, rate_based = self.kinds
        if isinstance(policy, Freshness):
            return freshness(ties=self.ties, beta=policy.beta)
        if isinstance(policy, RateBased):
            return rate_based(ties=policy.ties if self.ties == "oldest" else self.ties)
        return policy


PLAIN = "plain"
READINGS = {
    PLAIN: Reading("as the paper reads"),
    "operator": Reading("operators scheduled, not queries", kinds=(FreshnessByOperator, RateBasedByOperator)),
    "pending": Reading("all pending updates in one turn", kinds=(FreshnessOfAll, RateBasedOfAll)),
    "shared": Reading("one buffer for all readers of a stream", {"run": {"buffers": "shared"}}),
    "apart": Reading("an equal part of the load by each stream", {"apart": True}),
    "ties": Reading("ties to the lowest query number", ties="query"),
    "fine": Reading("selectivities from a continuum", {"steps": 0}),
    "whole": Reading("the selectivity drawn is that of the whole query", {"whole": True}),
    "skewed": Reading("selectivities skewed towards 1, Zipf 2.5", {"zipf": 2.5}),
    "cost": Reading("scheduling operations cost", {"run": {"scheduling_cost": CHEAPEST}}),
    "tenth": Reading("scheduling operations cost a tenth", {"run": {"scheduling_cost": CHEAPEST / 10}}),
    "weighted": Reading("queries weigh as much as they have users", {"weighted": True}),
}
OTHERS = ("skewed", "whole", "operator", "pending", "shared", "apart", "ties", "fine", "cost", "tenth")


def reading(name: str) -> Reading:
    """The reading of this name."""
    if name not in READINGS:
        raise DsmsError(f"no reading {name!r}{existing(name, READINGS)}")
    return READINGS[name]
