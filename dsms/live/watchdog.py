"""Looks now and then whether a domain that has work gets on with it; if not, it says so, and who is to blame."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from dsms.clock import stopwatch

log = logging.getLogger("dsms")
LOOKS = 4  # within the patience
LONG = 2  # times the patience: whoever hangs for longer is ended


class Culprit(NamedTuple):
    """Who keeps a domain from getting on."""

    what: str  # that can be said of it
    station: str | None = None  # None: it is no operator
    stack: str = ""  # where it is


class Watchdog:
    """Has a thread of its own, as whoever it watches may not come back.

    `pulse` answers something else whenever there was progress, and None where there is nothing to do. `end` is told of
    an operator that hangs for good; it may be that nothing can be done.
    """

    def __init__(
        self,
        domain: str,
        patience: float,
        pulse: Callable[[], Hashable | None],
        culprit: Callable[[], Culprit],
        end: Callable[[str], bool],
    ) -> None:
        self._domain, self.patience = domain, patience
        self._pulse, self._culprit, self._end = pulse, culprit, end
        self._last: Hashable | None = None
        self._since = stopwatch()
        self._closing = threading.Event()
        self._alert: Culprit | None = None
        self.alerts = 0
        self.ended: Culprit | None = None  # the last that was
        self._tried: Culprit | None = None  # the last that was to be

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._run, name=f"watchdog {self._domain}", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._closing.set()

    @property
    def stalled(self) -> bool:
        """Whether there is work and no progress."""
        return self._alert is not None

    def look(self, now: float) -> None:
        """At this instant."""
        pulse = self._pulse()
        if pulse is None or pulse != self._last:
            if self._alert is not None:
                log.warning("domain %s gets on again after %.0f s", self._domain, now - self._since)
            self._last, self._since, self._alert = pulse, now, None
            return
        waited = now - self._since
        if waited >= self.patience and self._alert is None:
            self._alert = culprit = self._culprit()
            self.alerts += 1
            log.error("domain %s has work and no progress for %.0f s: %s", self._domain, waited, culprit.what)
            if culprit.stack:
                log.error("domain %s: it is here:\n%s", self._domain, culprit.stack)
        elif self._alert is not None and self._alert.station is not None and waited >= LONG * self.patience:
            self._finish(self._alert, self._alert.station)

    def status(self) -> dict[str, Any]:
        """How things stand, as plain data."""
        alert = self._alert
        return {
            "alerts": self.alerts,
            "alert": None if alert is None else alert.what,
            "culprit": None if alert is None else alert.station,
            "seconds": None if alert is None else stopwatch() - self._since,
            "ended": None if self.ended is None else self.ended.station,
        }

    def _finish(self, alert: Culprit, station: str) -> None:
        """End what hangs, once."""
        if self._tried is alert:
            return
        self._tried = alert
        self.ended, before = alert, self.ended  # whoever hears of the end finds who it was
        if self._end(station):
            log.error("domain %s: the process of operator %r has been ended", self._domain, station)
        else:
            self.ended = before

    def _run(self) -> None:
        while not self._closing.wait(self.patience / LOOKS):
            self.look(stopwatch())
