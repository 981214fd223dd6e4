"""Where the page's data come from: a running system, asked, and found again after it was gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from actors.cli.asking import System
from dsms.errors import FailedError

PATIENCE = 5.0  # seconds for an answer: who looks every second will not wait longer
DECISIONS = 8  # the last of each domain


class Look(NamedTuple):
    """What was seen of a system at one moment."""

    status: dict[str, Any]
    decisions: list[dict[str, Any]]


class Source:
    """Asks a system that may go and come back: one that does not answer is looked for anew the next time."""

    def __init__(self, find: Callable[[], System]) -> None:
        self._find = find
        self._system: System | None = None

    def look(self) -> Look:
        """How everything stands, and what was decided last."""
        return Look(self.ask("status", timeout=PATIENCE), self.ask("why", DECISIONS, timeout=PATIENCE))

    def ask(self, method: str, *given: Any, **named: Any) -> Any:
        """What the system answers."""
        system = self._system or self._find()
        self._system = system
        try:
            return system.ask(method, *given, **named)
        except FailedError:
            self._system = None
            raise
