"""What policies that schedule whole queries have in common: the cut, and who goes first among equals."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.errors import PolicyError
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.segment import Segment


@dataclass
class QueryLevel(Policy):
    """A policy that schedules queries, a tuple through all of one before the next is taken."""

    ties: str = "oldest"  # among equals the query with the oldest tuple, or with "query" the first in the plan

    def __post_init__(self) -> None:
        if self.ties not in ("oldest", "query"):
            raise PolicyError(f"{self.name}: ties is {self.ties!r}: 'oldest' or 'query' is wanted")
        self.by_age = self.ties == "oldest"

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_query()


def rate(segment: Segment) -> float:
    """Results per unit of time: S/C, with C = c_1 + c_2·s_1 + c_3·s_2·s_1 + …; a chance of more than 1 counts as 1."""
    return min(1.0, segment.selectivity) / segment.mean_cost


def stale_chance(segment: Segment, pending: float) -> float:
    """1 − (1 − S)^N; of a single update S itself, so that who ties by rate ties here."""
    chance = segment.selectivity if segment.selectivity < 1 else 1.0
    stale: float = chance if pending == 1 else 1 - (1 - chance) ** pending
    return stale
