"""How long deciding takes, and how often a selector has changed its mind: from the beginning."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from dsms.clock import RealClock
from dsms.metric_names import DECISION
from dsms.observers import Observer
from dsms.policies.base import Policy

if TYPE_CHECKING:
    from dsms.engine import Engine

EVERY = 16  # decisions of which one is timed: each costs another look at the clock


class Decided(Observer):
    """Is told first of all when a turn begins: what others do then is no part of the decision."""

    trusted = True

    def __init__(self) -> None:
        self.counts = [0] * (len(DECISION) + 1)
        self.seconds = 0.0  # of those that were timed
        self.choices = 0
        self._number = 0

    def attach(self, engine: Engine) -> None:
        self._engine, self._real = engine, isinstance(engine.clock, RealClock)

    def begin(self, now: float) -> None:
        self._number += 1
        if self._real and self._number % EVERY == 1:
            took = max(0.0, self._engine.clock.now() - now)
            self.counts[bisect_left(DECISION, took)] += 1
            self.seconds += took

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        self.choices += after is not self._engine.chosen
