"""Round robin over operators or over queries: each in turn, the empty ones passed over."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dsms.errors import PolicyError
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.policies.workload import OperatorLevel
from dsms.segment import Segment, Share


@dataclass
class Cyclic(Policy):
    """Segments on a ring; the place at which one is next visited does not change until it is."""

    entered: ClassVar[bool] = False

    tuples: int | None = None  # a visit lasts so many tuples, or
    time: float | None = None  # so much time, or what the plan says
    _size: int = field(default=1, init=False, repr=False)
    _at: int = field(default=-1, init=False, repr=False)  # places passed so far, round after round

    def __post_init__(self) -> None:
        for key, value in (("tuples", self.tuples), ("time", self.time)):
            if value is not None and not 0 < value < math.inf:
                raise PolicyError(f"{self.name}: {key} is {value}: a positive number is wanted")

    def ring(self, segments: list[Segment]) -> list[Segment]:
        self._size, self._at = len(segments), -1
        return segments

    def priority(self, segment: Segment) -> float:
        return -self._next(segment)

    def learnt(self) -> int:
        return self._at

    def recall(self, learnt: Any) -> None:
        self._at = learnt

    def served(self, segment: Segment) -> None:
        self._at = self._next(segment)

    def shares(self) -> bool:
        return self.tuples is not None or self.time is not None

    def share(self, segment: Segment) -> Share | None:
        return Share(self.tuples or math.inf, self.time or math.inf)

    def _next(self, segment: Segment) -> int:
        return self._at + 1 + (segment.index - self._at - 1) % self._size


@dataclass
class RoundRobin(Cyclic, OperatorLevel):
    """Babcock et al. and Raindrop: a cyclic list of operators; Bai and Zaniolo give each visit a number of tuples."""

    name: ClassVar[str] = "rr"

    def __post_init__(self) -> None:
        Cyclic.__post_init__(self)
        OperatorLevel.__post_init__(self)
        if Cyclic.shares(self) and OperatorLevel.shares(self):
            raise PolicyError("rr: a visit lasts either tuples/time or what ratio/threshold say: give one of the two")

    def segments(self, plan: Plan) -> list[Segment]:
        return self.ring(plan.by_operator())

    def shares(self) -> bool:
        return Cyclic.shares(self) or OperatorLevel.shares(self)

    def share(self, segment: Segment) -> Share | None:
        return Cyclic.share(self, segment) if Cyclic.shares(self) else OperatorLevel.share(self, segment)


@dataclass
class RoundRobinByQuery(Cyclic):
    """Aurora's, as Sharaf et al. compare with: round robin over queries, a tuple runs through the whole query."""

    name: ClassVar[str] = "rr-query"

    def segments(self, plan: Plan) -> list[Segment]:
        return self.ring(plan.by_query())
