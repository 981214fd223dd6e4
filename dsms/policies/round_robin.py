"""Round robin over operators (`rr`) or queries (`rr-query`): each in turn; segments without work are skipped.

A visit is a turn: at most `tuples`, at most `time`, or what the plan's `slice` allows. With `tuples` or `time`, and no
`slice` in the plan, the clock's own slice does not apply: `rr-query:tuples=1` takes a tuple through the whole query.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dsms.engine.policy import PolicyTraits, StatefulPolicy
from dsms.errors import PolicyError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment, Share
from dsms.policies.workload_rule import OperatorPolicy


@dataclass
class RingPolicy(StatefulPolicy):
    """Visits the segments in a fixed cycle."""

    traits = PolicyTraits(has_entry_cost=False)

    tuples: int | None = None  # the most tuples of a visit
    time: float | None = None  # the longest time of a visit; neither given: the plan's `slice`
    _size: int = field(default=1, init=False, repr=False)
    _at: int = field(default=-1, init=False, repr=False)  # positions passed so far, over all rounds

    def __post_init__(self) -> None:
        for key, value in (("tuples", self.tuples), ("time", self.time)):
            if value is not None and not 0 < value < math.inf:
                raise PolicyError(f"{self.name}: {key} is {value}: expected a positive number")
        self.traits = replace(self.traits, limits_turns=self._limits_visits)

    def ring(self, segments: list[Segment]) -> list[Segment]:
        self._size, self._at = len(segments), -1
        return segments

    def priority(self, segment: Segment) -> float:
        return -self._next(segment)

    def snapshot(self) -> int:
        return self._at

    def restore(self, state: Any) -> None:
        self._at = state

    def on_served(self, segment: Segment) -> None:
        self._at = self._next(segment)

    @property
    def _limits_visits(self) -> bool:
        return self.tuples is not None or self.time is not None

    def share(self, segment: Segment) -> Share | None:
        return Share(self.tuples or math.inf, self.time or math.inf) if self._limits_visits else None

    def _next(self, segment: Segment) -> int:
        return self._at + 1 + (segment.index - self._at - 1) % self._size


@dataclass
class RoundRobin(RingPolicy, OperatorPolicy):
    """Babcock et al. and Raindrop: operators in a cycle; in Bai and Zaniolo a visit lasts a number of tuples."""

    name: ClassVar[str] = "rr"

    def __post_init__(self) -> None:
        RingPolicy.__post_init__(self)
        OperatorPolicy.__post_init__(self)
        if self._limits_visits and self._limits_runs:
            raise PolicyError("rr: tuples/time and ratio/threshold both limit a visit: give one of the two")
        self.traits = replace(self.traits, limits_turns=self._limits_visits or self._limits_runs)

    def segments(self, plan: Plan) -> list[Segment]:
        return self.ring(plan.by_operator())

    def share(self, segment: Segment) -> Share | None:
        return RingPolicy.share(self, segment) if self._limits_visits else OperatorPolicy.share(self, segment)


@dataclass
class RoundRobinByQuery(RingPolicy):
    """Aurora's, as in Sharaf et al.: queries in a cycle; a tuple runs through the whole query."""

    name: ClassVar[str] = "rr-query"

    def segments(self, plan: Plan) -> list[Segment]:
        return self.ring(plan.by_query())
