"""Waits while a deployment starts: says what it waits for, and gives up only after a long time without progress."""

from __future__ import annotations

import os
from collections.abc import Callable

from dsms.clock import monotonic_s
from dsms.errors import DsmsError

ReportProgress = Callable[[str], object]
STALL_LIMIT_S = 600.0  # without progress: a machine with twenty times the work it can do takes minutes for a step
REPORT_INTERVAL_S = 5.0  # between two reports of what is waited for


class StartWait:
    """Counts the time since something last happened; the caller says what happens and what it waits for."""

    def __init__(
        self, report: ReportProgress, limit_s: float = STALL_LIMIT_S, now: Callable[[], float] = monotonic_s
    ) -> None:
        self._report, self._limit_s, self._now = report, limit_s, now
        self._since = self._reported = now()

    def advance(self) -> None:
        """Start counting again: something happened."""
        self._since = self._reported = self._now()

    def check(self, what: str) -> None:
        """Report now and then what is waited for; DsmsError once nothing has happened for too long."""
        now = self._now()
        if now - self._since > self._limit_s:
            raise DsmsError(f"gave up after {self._limit_s:g} s: {what}; {describe_load()}")
        if now - self._reported >= REPORT_INTERVAL_S:
            self._reported = now
            self._report(f"{what}, for {now - self._since:.0f} s; {describe_load()}")


def describe_load() -> str:
    """How many processes want a core, and how many cores there are."""
    return f"the load of this machine is {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
