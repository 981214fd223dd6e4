"""Counts all decisions of the scheduler and keeps the last sampled ones with all their candidates."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dsms.advice.why import Decision, DecisionProbe
from dsms.clock import RealClock, monotonic_s
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.plan.segment import Segment
from dsms.policies.adaptive.gatherer import format_policy

if TYPE_CHECKING:
    from dsms.engine.engine import Engine

KEPT_DECISIONS = 20
SAMPLING_TIME_DIVISOR = 100  # on a real clock: sampling takes at most 1/100 of the time
SAMPLING_INTERVAL_MAX_DECISIONS = 1024  # in virtual time: in the end every 1024th decision is sampled,
SAMPLING_GROWTH_DIVISOR = 16  # before that, after n decisions, every (n/16)th


class DecisionLog(Observer):
    """Samples decisions rarely enough: sampling one costs as much as ranking all segments."""

    trusted = True

    def __init__(self) -> None:
        self.count = 0  # decisions
        self._kept: deque[Decision] = deque(maxlen=KEPT_DECISIONS)
        self._look: DecisionProbe | None = None  # of the decision whose turn is running
        self._next = 1.0  # the decision number, or the instant, of the next sample

    def attach(self, engine: Engine) -> None:
        self._engine, self._look = engine, None
        self._real = isinstance(engine.clock, RealClock)
        self._next = -math.inf if self._real else self.count + 1

    def begin(self, now: float) -> None:
        self.count += 1
        if (now if self._real else self.count) >= self._next:
            began = monotonic_s()
            self._look, self._at = DecisionProbe(self._engine), now
            if self._real:
                self._next = now + SAMPLING_TIME_DIVISOR * (monotonic_s() - began)
            else:
                self._next = self.count + min(
                    SAMPLING_INTERVAL_MAX_DECISIONS, max(1, self.count // SAMPLING_GROWTH_DIVISOR)
                )

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._look is not None:
            self._look.close(start, segment, steps)
            policy = format_policy(self._engine.control.chosen)
            self._kept.append(self._look.decision(policy, self._at, self._at, self.count))
            self._look = None

    def last(self, count: int) -> list[dict[str, Any]]:
        """The last sampled decisions, the newest first."""
        return [decision.to_json() for decision in list(self._kept)[: -count - 1 : -1]] if count > 0 else []
