"""Detects that a domain with work makes no progress, logs which operator blocks it, and kills that process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import NamedTuple

from dsms.clock import monotonic_s
from dsms.live.monitor.status import WatchdogStatus

log = logging.getLogger("dsms")
CHECKS_PER_TIMEOUT = 4  # how often to check within the stall timeout
KILL_AFTER_TIMEOUTS = 2  # times the stall timeout: then the operator's process is killed


class StallCause(NamedTuple):
    """What keeps a domain from making progress."""

    what: str  # in words
    station: str | None = None  # None: not an operator
    stack: str = ""  # its call stack


class Watchdog:
    """Checks in its own thread, since the domain's thread may hang.

    `read_progress` answers another value after every progress, and None while there is nothing to do. `kill` ends the
    process of a hanging operator; it answers False if it cannot.
    """

    def __init__(
        self,
        domain: str,
        timeout_s: float,
        read_progress: Callable[[], Hashable | None],
        find_cause: Callable[[], StallCause],
        kill: Callable[[str], bool],
    ) -> None:
        self._domain, self.timeout_s = domain, timeout_s
        self._read_progress, self._find_cause, self._kill = read_progress, find_cause, kill
        self._last: Hashable | None = None
        self._since = monotonic_s()
        self._closing = threading.Event()
        self._alert: StallCause | None = None
        self.alerts = 0
        self.ended: StallCause | None = None  # the last that was killed
        self._tried: StallCause | None = None  # the last that was to be killed

    def start(self) -> None:
        """Start checking."""
        threading.Thread(target=self._run, name=f"watchdog {self._domain}", daemon=True).start()

    def close(self) -> None:
        """Stop checking."""
        self._closing.set()

    @property
    def stalled(self) -> bool:
        """Whether the domain has work and makes no progress."""
        return self._alert is not None

    def check(self, now: float) -> None:
        """Compare the domain's progress with the last check; raise or clear the alert."""
        progress = self._read_progress()
        if progress is None or progress != self._last:
            if self._alert is not None:
                log.warning("domain %s makes progress again after %.0f s", self._domain, now - self._since)
            self._last, self._since, self._alert = progress, now, None
            return
        waited = now - self._since
        if waited >= self.timeout_s and self._alert is None:
            self._alert = cause = self._find_cause()
            self.alerts += 1
            log.error(
                "domain %s is stalled: work but no progress for %.0f s: %s",
                self._domain,
                waited,
                cause.what,
            )
            if cause.stack:
                log.error("domain %s: stack of the stalled operator:\n%s", self._domain, cause.stack)
        elif (
            self._alert is not None
            and self._alert.station is not None
            and waited >= KILL_AFTER_TIMEOUTS * self.timeout_s
        ):
            self._kill_stalled(self._alert, self._alert.station)

    def status(self) -> WatchdogStatus:
        """The alert, if there is one, and how many there were."""
        alert = self._alert
        return WatchdogStatus(
            alerts=self.alerts,
            alert=None if alert is None else alert.what,
            culprit=None if alert is None else alert.station,
            seconds=None if alert is None else monotonic_s() - self._since,
            ended=None if self.ended is None else self.ended.station,
        )

    def _kill_stalled(self, alert: StallCause, station: str) -> None:
        """Kill the process of a stalled operator, once."""
        if self._tried is alert:
            return
        self._tried = alert
        self.ended, before = alert, self.ended  # set first: the domain reads it when the process ends
        if self._kill(station):
            log.error("domain %s: killed the process of operator %r", self._domain, station)
        else:
            self.ended = before

    def _run(self) -> None:
        while not self._closing.wait(self.timeout_s / CHECKS_PER_TIMEOUT):
            self.check(monotonic_s())
