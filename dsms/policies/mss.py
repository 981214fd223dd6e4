"""MSS: the queue of tuples whose best stretch yields most, by exact knowledge of every waiting tuple. A yardstick.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", section 5: from the first tuple of each queue draw lines to
the end of every later one; the steepest is the first segment. For latency a line climbs by results, and nothing that
keeps the order of arrival has less total latency for a batch; for memory (their path of two operators, carried over to
any plan) it climbs by bytes freed, operator by operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsms.foresight import TupleCharts, require_foresight
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine


@dataclass
class Mss(Policy):
    name: ClassVar[str] = "mss"
    clairvoyant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._charts = TupleCharts(lambda seen: seen.outputs)

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_tree()

    def priority(self, segment: Segment) -> float:
        return self._charts.slope(segment)

    def begin(self, engine: Engine) -> Policy:
        require_foresight(self.name, engine)
        self.__post_init__()
        return self


@dataclass
class MssMemory(Mss):
    name: ClassVar[str] = "mss-memory"

    def __post_init__(self) -> None:
        self._charts = TupleCharts(lambda seen: seen.freed)

    def segments(self, plan: Plan) -> list[Segment]:
        return plan.by_operator()
