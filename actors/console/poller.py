"""Polls a deployment once a second for all open pages together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.console.history import History, Sample
from actors.console.source import Observation
from dsms.clock import monotonic_s
from dsms.live.monitor.status import DeploymentStatus, DomainStatus

POLL_INTERVAL_S = 1.0  # between two polls
STOP_TIMEOUT_S = 10.0  # for a running poll to finish


@dataclass(frozen=True)
class PageState:
    """What a page shows; replaced as a whole after every poll."""

    number: int = 0  # of polls so far, failed ones included
    status: DeploymentStatus | None = None  # the last one received
    decisions: tuple[Mapping[str, Any], ...] = ()
    history: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)  # by domain
    error: str | None = None  # why the last poll failed
    hidden: bool = False  # the viewer has not entered a token for reading
    heard: float | None = None  # monotonic time of the last answer

    def domain(self, name: str | None) -> DomainStatus | None:
        """The domain of this name, else the first."""
        domains = self.status.domains if self.status else []
        return next((one for one in domains if one.domain == name), domains[0] if domains else None)


class Poller:
    """Polls in its own thread; pages read `view`."""

    def __init__(self, poll: Callable[[], Observation], every: float = POLL_INTERVAL_S) -> None:
        self._poll, self._every = poll, every
        self.view = PageState()
        self._histories: dict[str, History] = {}
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="console poller", daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop polling."""
        self._enough.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def once(self) -> None:
        """Poll; after an error the view keeps the last status and says why."""
        before = self.view
        try:
            seen = self._poll()
        except (Exception, SystemExit) as error:  # polling continues after any error; Ray raises SystemExit too
            message = str(error) or type(error).__name__
            self.view = replace(before, number=before.number + 1, error=message)
            return
        if before.status is not None and before.status.since != seen.status.since:
            self._histories.clear()  # another deployment of the same name
        for domain in seen.status.domains:
            self._histories.setdefault(domain.domain, History()).add(domain)
        history = {name: kept.samples() for name, kept in self._histories.items()}
        self.view = PageState(before.number + 1, seen.status, tuple(seen.decisions), history, heard=monotonic_s())

    def _run(self) -> None:
        while not self._enough.is_set():
            self.once()
            self._enough.wait(self._every)
