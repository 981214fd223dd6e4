"""Policy: how a plan is cut into segments, which ready segment runs next, and how much it may take in a turn.

A policy author writes a `Policy`. One that keeps state between turns, or cuts the plan by statistics, is a
`StatefulPolicy`; the engine reads every policy as one through `as_stateful`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dsms.config.qos import Qos
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment, Share

if TYPE_CHECKING:
    from dsms.engine.engine import Engine
    from dsms.engine.statistics import Statistics


@dataclass(frozen=True)
class PolicyTraits:
    """How the engine treats a policy; the defaults suit most."""

    by_age: bool = True  # ties go to the segment with the oldest tuple; False: to the first in the policy's list
    limits_turns: bool | None = None  # whether `share` ever answers; None: it does if the class defines it
    has_entry_cost: bool = True  # whether entering a changed priority costs scheduling time; a ring enters none
    clairvoyant: bool = False  # True: an oracle that reads the outcomes of queued tuples
    stepwise: bool = False  # True: a turn of one tuple is one operator's work, not the whole segment's


class Policy(ABC):
    """Decides which segment runs; it knows neither the clock nor the runner."""

    name: ClassVar[str]
    dynamic: ClassVar[bool] = True  # False: priorities depend on statistics and weights only, not on the backlog
    traits: PolicyTraits = PolicyTraits()

    @abstractmethod
    def segments(self, plan: Plan) -> list[Segment]:
        """Cut the plan into the segments to schedule; every operator must be in one."""

    @abstractmethod
    def priority(self, segment: Segment) -> float:
        """Return the segment's priority: the highest runs first. Called only when the segment's state has changed."""

    def share(self, segment: Segment) -> Share | None:
        """Return the most that the segment may take in this turn; None: what the plan's `slice` and `take` allow."""
        return None


class StatefulPolicy(Policy):
    """A policy that the engine tells when it takes over, runs a segment or hands over; override what is needed."""

    def begin(self, engine: Engine) -> Policy:
        """Take over the engine; return the policy that decides: itself or, for a selector, a candidate."""
        return self

    def end(self, engine: Engine) -> None:
        """Hand the engine over to another policy."""
        return

    def on_served(self, segment: Segment) -> None:
        """Note that this segment gets the next turn."""
        return

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        """Cut the plan by statistics; a policy that overrides this cuts again whenever a statistics window ends."""
        return self.segments(plan)

    def is_dynamic(self, plan: Plan) -> bool:
        """Return whether priorities depend on backlogs in this plan."""
        return self.dynamic

    def check_qos(self, qos: Qos) -> None:
        """Raise PolicyError if this policy cannot follow these QoS requirements."""
        return

    def snapshot(self) -> Any:
        """Return the state that the policy has learnt, for a checkpoint; None: there is none."""
        return None

    def restore(self, state: Any) -> None:
        """Continue from a snapshot of a like policy; `begin` has been called."""
        return

    def copy_for_trial(self, engine: Engine) -> Policy:
        """Return a copy to try out in a simulation of what this engine runs."""
        return copy.copy(self)


class _StatelessAdapter(StatefulPolicy):
    """A plain policy with the default answers of a stateful one."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def segments(self, plan: Plan) -> list[Segment]:
        return self._policy.segments(plan)

    def priority(self, segment: Segment) -> float:
        return self._policy.priority(segment)

    def share(self, segment: Segment) -> Share | None:
        return self._policy.share(segment)

    def begin(self, engine: Engine) -> Policy:
        return self._policy

    def is_dynamic(self, plan: Plan) -> bool:
        return self._policy.dynamic

    def copy_for_trial(self, engine: Engine) -> Policy:
        return copy.copy(self._policy)


def as_stateful(policy: Policy) -> StatefulPolicy:
    """Return the policy itself if it is stateful, else the policy with the default answers of a stateful one."""
    return policy if isinstance(policy, StatefulPolicy) else _StatelessAdapter(policy)


def cuts_by_statistics(policy: Policy) -> bool:
    """Return whether the policy's segments depend on statistics."""
    return isinstance(policy, StatefulPolicy) and type(policy).cut is not StatefulPolicy.cut


def notes_service(policy: Policy) -> bool:
    """Return whether the policy must be told which segment gets each turn."""
    return isinstance(policy, StatefulPolicy) and type(policy).on_served is not StatefulPolicy.on_served


def limits_turns(policy: Policy) -> bool:
    """Return whether the policy's `share` ever answers, so that the engine must call it for every turn."""
    declared = policy.traits.limits_turns
    return type(policy).share is not Policy.share if declared is None else declared
