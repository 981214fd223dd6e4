"""One look at the system a moment, whoever watches: several browsers cost as much as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.console.history import History, Sample
from actors.console.source import Look
from dsms.clock import stopwatch

EVERY = 1.0  # seconds between two looks
CLOSING = 10.0  # seconds for a look that has begun to end


@dataclass(frozen=True)
class View:
    """All that a page shows; it is replaced, never changed."""

    number: int = 0  # of looks so far, those that failed too
    status: Mapping[str, Any] | None = None  # the last there was
    decisions: tuple[Mapping[str, Any], ...] = ()
    history: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)  # by domain
    error: str | None = None  # why the last look failed
    hidden: bool = False  # whether whoever looks may not
    heard: float | None = None  # by the stopwatch: when the last answer came

    def domain(self, name: str | None) -> Mapping[str, Any] | None:
        """The domain of this name, else the first."""
        domains = self.status["domains"] if self.status else []
        return next((one for one in domains if one["domain"] == name), domains[0] if domains else None)


class Poller:
    """Looks in a thread of its own; whoever wants to know reads `view`."""

    def __init__(self, look: Callable[[], Look], every: float = EVERY) -> None:
        self._look, self._every = look, every
        self.view = View()
        self._histories: dict[str, History] = {}
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="console poller", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._enough.set()
        if self._thread.is_alive():
            self._thread.join(CLOSING)

    def once(self) -> None:
        """Look; what cannot be seen is said, and what was seen last stays."""
        before = self.view
        try:
            seen = self._look()
        except (Exception, SystemExit) as error:  # whatever is wrong, watching goes on; Ray leaves by SystemExit too
            said = str(error) or type(error).__name__
            self.view = replace(before, number=before.number + 1, error=said)
            return
        if before.status is not None and before.status.get("since") != seen.status.get("since"):
            self._histories.clear()  # another system of the same name
        for domain in seen.status["domains"]:
            self._histories.setdefault(domain["domain"], History()).add(domain)
        history = {name: kept.samples() for name, kept in self._histories.items()}
        self.view = View(before.number + 1, seen.status, tuple(seen.decisions), history, heard=stopwatch())

    def _run(self) -> None:
        while not self._enough.is_set():
            self.once()
            self._enough.wait(self._every)
