"""Time behind three methods: the same engine simulates, is paced, or runs as fast as it can; only here is time read."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod


class Clock(ABC):
    """What the engine asks of time; an instant is a number of the plan's time units (seconds on the real clocks)."""

    slice: float | None = 0.020  # the longest turn where the plan does not say; None: one tuple

    @abstractmethod
    def now(self) -> float:
        """This instant."""

    @abstractmethod
    def wait_until(self, instant: float) -> None:
        """Let time pass idly."""

    @abstractmethod
    def spend(self, cost: float) -> float:
        """Let the time pass that work has cost; answers the instant it is done."""

    def meter(self) -> float | None:
        """A reading to measure work by, or None where its declared cost is what counts."""
        return None


class VirtualClock(Clock):
    """Time passes only when the engine says so: instant, and the same every run."""

    slice = None

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def wait_until(self, instant: float) -> None:
        self._now = max(self._now, instant)

    def spend(self, cost: float) -> float:
        self._now += cost
        return self._now


class RealClock(Clock):
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._origin = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self._origin

    def wait_until(self, instant: float) -> None:
        time.sleep(max(0.0, instant - self.now()))


class PacedClock(RealClock):
    """Declared cost is waited out in real time: a simulated CPU."""

    def spend(self, cost: float) -> float:
        time.sleep(cost)
        return self.now()


class WallClock(RealClock):
    """Work takes the time it takes: costs are measured, nothing is waited for but arrivals."""

    def spend(self, cost: float) -> float:
        return self.now()

    def meter(self) -> float | None:
        return time.perf_counter()
