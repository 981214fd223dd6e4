"""Measures how long decisions take, and counts how often a selector changes the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsms.clock import RealClock
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.measure.histogram import Histogram
from dsms.measure.metric_names import DECISION

if TYPE_CHECKING:
    from dsms.engine.engine import Engine

TIMED_EVERY_DECISIONS = 16  # one decision in 16 is timed: reading the clock costs time


class DecisionStats(Observer):
    """The first observer at the start of a turn, so that other observers do not count as decision time."""

    trusted = True

    def __init__(self) -> None:
        self.seconds = Histogram(DECISION)  # of the timed decisions
        self.choices = 0
        self._number = 0

    def attach(self, engine: Engine) -> None:
        self._engine, self._real = engine, isinstance(engine.clock, RealClock)

    def begin(self, now: float) -> None:
        self._number += 1
        if self._real and self._number % TIMED_EVERY_DECISIONS == 1:
            self.seconds.add(max(0.0, self._engine.clock.now() - now))

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        self.choices += after is not self._engine.control.chosen
