"""QueryPolicy: base of the policies that schedule whole queries; defines the cut and the order of ties.

Sharaf et al. decide between tuples and know no slice: a turn of one tuple, as in virtual time, does the same. A slice
binds these policies as all others: it may stop a tuple between two operators, and the query's next turn continues it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.engine.policy import Policy
from dsms.errors import PolicyError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment


@dataclass
class QueryPolicy(Policy):
    """A policy that schedules queries: a tuple runs through the whole query before the next one starts."""

    ties: str = "oldest"  # ties go to the query with the oldest tuple; "query": to the first in the plan

    def __post_init__(self) -> None:
        if self.ties not in ("oldest", "query"):
            raise PolicyError(f"{self.name}: ties is {self.ties!r}: expected 'oldest' or 'query'")
        self.traits = replace(self.traits, by_age=self.ties == "oldest")

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_query()


def result_rate(segment: Segment) -> float:
    """Return results per unit of time: S/C, with C = c_1 + c_2·s_1 + c_3·s_2·s_1 + …; S counts as at most 1."""
    return min(1.0, segment.selectivity) / segment.mean_cost


def stale_probability(segment: Segment, pending: float) -> float:
    """Return the chance that one of N updates changes the output: 1 − (1 − S)^N, exactly S for one update."""
    chance = segment.selectivity if segment.selectivity < 1 else 1.0
    stale: float = chance if pending == 1 else 1 - (1 - chance) ** pending
    return stale
