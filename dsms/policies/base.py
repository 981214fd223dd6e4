"""What a policy is: how the plan is cut, which ready segment comes first, and how much it may take in a turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dsms.plan import Plan
from dsms.segment import Segment, Share


class Policy(ABC):
    """Three answers; a policy never knows under which clock or on which runner it decides."""

    name: ClassVar[str]
    dynamic: ClassVar[bool] = True  # False: a priority depends on statistics and weights only, not on the backlog

    @abstractmethod
    def segments(self, plan: Plan) -> list[Segment]:
        """The plan cut into what is scheduled as one."""

    @abstractmethod
    def priority(self, segment: Segment) -> float:
        """The highest runs first; asked only when the segment's own state has changed."""

    def share(self, segment: Segment) -> Share | None:
        """The most it may take in this turn; None leaves it to the plan's `slice` and `take`."""
        return None

    def shares(self) -> bool:
        """Whether `share` ever answers, so that it need be asked."""
        return type(self).share is not Policy.share

    def served(self, segment: Segment) -> None:
        """The segment has been chosen."""
        return
