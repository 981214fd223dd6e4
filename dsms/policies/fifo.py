"""FIFO: runs the oldest tuple first, through its whole path before the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.plan.segment import Segment
from dsms.policies.workload_rule import OperatorPolicy


@dataclass
class Fifo(OperatorPolicy):
    name: ClassVar[str] = "fifo"
    dynamic: ClassVar[bool] = False

    def priority(self, segment: Segment) -> float:
        return 0.0  # all equal: the tie goes to the oldest tuple
