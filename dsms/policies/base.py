"""What a policy is: how the plan is cut, which ready segment comes first, and how much it may take in a turn."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from dsms.plan import Plan
from dsms.qos import Qos
from dsms.segment import Segment, Share

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.statistics import Statistics


class Policy(ABC):
    """Three answers; a policy never knows under which clock or on which runner it decides."""

    name: ClassVar[str]
    dynamic: ClassVar[bool] = True  # False: a priority depends on statistics and weights only, not on the backlog
    entered: ClassVar[bool] = True  # whether changed priorities must be entered somewhere: a ring has none
    clairvoyant: ClassVar[bool] = False  # True: it looks at what will become of queued tuples; a yardstick
    stepwise: ClassVar[bool] = False  # True: a turn of one tuple is one operator's work on it, not all of the segment's
    by_age: bool = True  # ties go to the oldest tuple; False: to the segment first in the policy's list

    @abstractmethod
    def segments(self, plan: Plan) -> list[Segment]:
        """The plan cut into what is scheduled as one."""

    def by_backlog(self, plan: Plan) -> bool:
        """Whether priorities depend on backlogs, on this plan."""
        return self.dynamic

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        """The same by what is known now; one that overrides this is asked again when a window of statistics ends."""
        return self.segments(plan)

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

    def begin(self, engine: Engine) -> Policy:
        """It is put in charge; answers who decides first: itself or, for a selector, the one it chooses."""
        return self

    def consider(self, qos: Qos) -> None:
        """This is to be wanted while it is in charge: one that goes by it refuses what it cannot go by."""
        return

    def learnt(self) -> Any:
        """What it has found out while it was in charge, for one like it in another process; None: nothing."""
        return None

    def recall(self, learnt: Any) -> None:
        """Go on with what another like it has learnt; it is in charge already."""
        return

    def tried(self, engine: Engine) -> Policy:
        """One like it, to be tried out in a copy of what this engine runs."""
        return copy.copy(self)

    def end(self, engine: Engine) -> None:
        """Another has been put in its place."""
        return
