"""OperatorPolicy: base of the policies that schedule single operators, with Raindrop's workload rule.

Sutherland, Raindrop thesis: with N tuples queued and A = N·RATIO, dequeue A where A > THRESHOLD, else all N. The
thesis does not say how A is rounded: down here, to at least 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dsms.engine.policy import Policy
from dsms.errors import PolicyError
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment, Share

DEFAULT_RATIO = 0.3  # of the queued tuples
DEFAULT_THRESHOLD = 50.0  # tuples


def tuples_per_run(queued: float, ratio: float, threshold: float) -> int:
    """Return how many of the queued tuples one run takes."""
    part = queued * ratio
    return max(1, math.floor(part if part > threshold else queued))


@dataclass
class OperatorPolicy(Policy):
    """A policy that schedules single operators."""

    ratio: float | None = None  # giving either turns on Raindrop's workload rule
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.ratio is not None and not 0 < self.ratio <= 1:
            raise PolicyError(f"{self.name}: ratio is {self.ratio}: expected a number above 0 and up to 1")
        if self.threshold is not None and not self.threshold >= 0:
            raise PolicyError(f"{self.name}: threshold is {self.threshold}: expected a number of at least 0")
        self.traits = replace(self.traits, limits_turns=self._limits_runs)

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_operator()

    @property
    def _limits_runs(self) -> bool:
        return self.ratio is not None or self.threshold is not None

    def share(self, segment: Segment) -> Share | None:
        if not self._limits_runs:
            return None
        ratio = DEFAULT_RATIO if self.ratio is None else self.ratio
        threshold = DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        return Share(tuples_per_run(segment.pending, ratio, threshold), math.inf)
