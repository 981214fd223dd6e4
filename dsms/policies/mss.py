"""MSS: an oracle that runs the queue whose next tuples yield most per unit of time.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", section 5: from the first tuple of each queue draw lines to
the end of every later one; the steepest is the first segment. For latency a line climbs by results, and nothing that
keeps the order of arrival has less total latency for a batch; for memory (their path of two operators, carried over to
any plan) it climbs by bytes freed, operator by operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.engine.engine import Engine
from dsms.engine.oracle import TupleCharts, require_oracle
from dsms.engine.policy import Policy, PolicyTraits, StatefulPolicy
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment


@dataclass
class Mss(StatefulPolicy):
    name: ClassVar[str] = "mss"
    traits = PolicyTraits(clairvoyant=True)

    def __post_init__(self) -> None:
        self._charts = TupleCharts(lambda seen: seen.outputs)

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_tree()

    def priority(self, segment: Segment) -> float:
        return self._charts.slope(segment)

    def begin(self, engine: Engine) -> Policy:
        require_oracle(self.name, engine)
        self.__post_init__()
        return self


@dataclass
class MssMemory(Mss):
    name: ClassVar[str] = "mss-memory"

    def __post_init__(self) -> None:
        self._charts = TupleCharts(lambda seen: seen.freed)

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_operator()
