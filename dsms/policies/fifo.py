"""FIFO: the oldest tuple first, to completion through its whole path before the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.policies.workload import OperatorLevel
from dsms.segment import Segment


@dataclass
class Fifo(OperatorLevel):
    name: ClassVar[str] = "fifo"
    dynamic: ClassVar[bool] = False

    def priority(self, segment: Segment) -> float:
        return 0.0  # all alike: the tie goes to the oldest tuple, which is what FIFO means
