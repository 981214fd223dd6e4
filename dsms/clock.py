"""Clocks: virtual, paced and wall time behind three methods; only this file reads the system's time."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

LATENESS_LIMIT_S = 0.1  # of a busy paced clock behind real time; the simulated CPU loses what exceeds it


class Clock(ABC):
    """The engine's clock; an instant is in the plan's time unit (seconds on real clocks)."""

    slice: float | None = 0.020  # the longest turn unless the plan sets one; None: one tuple
    exact = False  # whether tuples are processed one by one, each at its own instant
    budget: float = 1.0  # cost that a unit of time pays for

    @abstractmethod
    def now(self) -> float:
        """Return the current instant."""

    @abstractmethod
    def wait_until(self, instant: float) -> None:
        """Wait until an instant."""

    @abstractmethod
    def spend(self, cost: float) -> float:
        """Let the time of this work pass; return the instant at which it is done."""

    def meter(self) -> float | None:
        """Return a reading to measure work by; None: the declared cost counts."""
        return None

    def idle(self) -> None:
        """Note that there is no work: time that passes until the next instant is not work."""
        return

    def admit(self, due: float | None = None) -> float:
        """Return the instant at which rows enter that come in now; not before they were due."""
        return self.now()


class VirtualClock(Clock):
    """Time that advances only when the engine says so: runs are instant and repeatable."""

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
    """Seconds since its creation or, for clocks shared by several processes, since an epoch.

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
    """Sleeps for the declared cost in real time: a simulated CPU, of any speed.

    The simulated CPU does nothing but declared work. What decisions, messages and inexact sleeps take besides makes the
    clock late: while there is work it continues from where it stands, and sleeps less until it has caught up.
    """

    def __init__(
        self, epoch: float | None = None, sleep: Callable[[float], object] | None = None, *, budget: float = 1.0
    ) -> None:
        super().__init__(epoch, sleep)
        self.budget = budget
        self._shown = super().now()
        self._is_idle = True

    def now(self) -> float:
        self._shown = max(self._shown, super().now() - (0.0 if self._is_idle else LATENESS_LIMIT_S))
        return self._shown

    def wait_until(self, instant: float) -> None:
        self._sleep(max(0.0, instant - super().now()))
        self._shown = max(self._shown, min(instant, super().now()))
        self._is_idle = False

    def spend(self, cost: float) -> float:
        due = self.now() + cost / self.budget
        self._is_idle = False
        time.sleep(max(0.0, due - super().now()))
        self._shown = max(due, super().now() - LATENESS_LIMIT_S)
        return self._shown

    def idle(self) -> None:
        self._is_idle = True

    def admit(self, due: float | None = None) -> float:
        if due is not None:
            self._shown = max(self._shown, min(due, super().now()))
        self._shown = self.now()
        self._is_idle = False
        return self._shown


class WallClock(RealClock):
    """Measures the CPU time that work takes, and waits only for arrivals."""

    def spend(self, cost: float) -> float:
        return self.now()

    def meter(self) -> float | None:
        return thread_cpu_time_s()


def wall_time_s() -> float:
    """Return the calendar time in seconds since 1970, which clocks of several processes share."""
    return time.time()


def thread_cpu_time_s() -> float | None:
    """Return the CPU time of this thread in seconds."""
    return time.thread_time()


def monotonic_s() -> float:
    """Return a monotonic reading in seconds; only differences mean something."""
    return time.perf_counter()
