"""Time behind three methods: the same engine simulates, is paced, or runs as fast as it can; only here is time read."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

LATE = 0.002  # by how much a paced turn may end late and the next still begin on time: sleeping is not exact


class Clock(ABC):
    """What the engine asks of time; an instant is a number of the plan's time units (seconds on the real clocks)."""

    slice: float | None = 0.020  # the longest turn where the plan does not say; None: one tuple
    exact = False  # whether every tuple has its own instant, so that they are worked on one by one
    budget: float = 1.0  # cost that a unit of time is enough for

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
    exact = True

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
    """Seconds since it was made or, where several processes must mean the same by an instant, since an epoch.

    It never goes back and does not jump: the epoch is looked at once. `sleep` is how idle time passes; one that ends
    early, because something has come up, is as good.
    """

    def __init__(self, epoch: float | None = None, sleep: Callable[[float], object] | None = None) -> None:
        self._origin = time.monotonic() if epoch is None else time.monotonic() - (time.time() - epoch)
        self._sleep = sleep or time.sleep

    def now(self) -> float:
        return time.monotonic() - self._origin

    def wait_until(self, instant: float) -> None:
        self._sleep(max(0.0, instant - self.now()))


class PacedClock(RealClock):
    """Declared cost is waited out in real time: a simulated CPU, of which there may be less or more than a whole.

    What the work itself takes is part of that time: a turn lasts as long as declared from when it was decided on.
    """

    def __init__(
        self, epoch: float | None = None, sleep: Callable[[float], object] | None = None, *, budget: float = 1.0
    ) -> None:
        super().__init__(epoch, sleep)
        self.budget = budget
        self._read = self.now()  # up to where time has been accounted for

    def now(self) -> float:
        self._read = super().now()
        return self._read

    def spend(self, cost: float) -> float:
        due = self._read + cost / self.budget
        time.sleep(max(0.0, due - super().now()))
        self._read = max(due, super().now() - LATE)
        return self._read


class WallClock(RealClock):
    """Work takes the time it takes: the CPU's time is measured, nothing is waited for but arrivals."""

    def spend(self, cost: float) -> float:
        return self.now()

    def meter(self) -> float | None:
        return cpu_time()


def epoch() -> float:
    """This instant by the calendar: what clocks of several processes count from."""
    return time.time()


def cpu_time() -> float | None:
    """What this thread has had of the CPU."""
    return time.thread_time()


def stopwatch() -> float:
    """A reading whose difference to another is the seconds between them."""
    return time.perf_counter()
