"""Reads status and decisions of a deployment for the console; finds it again after an outage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from actors.control.client import ControlClient
from dsms.errors import FailedError
from dsms.live.monitor.status import DeploymentStatus

STATUS_TIMEOUT_S = 5.0  # for an answer: the console polls every second
DECISIONS_SHOWN = 8  # the last of each domain


class Observation(NamedTuple):
    """One poll of a deployment."""

    status: DeploymentStatus
    decisions: list[dict[str, Any]]


class DeploymentSource:
    """Calls a deployment that may restart: after a failed call it is looked up again."""

    def __init__(self, find: Callable[[], ControlClient]) -> None:
        self._find = find
        self._system: ControlClient | None = None

    def poll(self) -> Observation:
        """The present status and the last decisions."""
        return Observation(
            self.ask("status", timeout=STATUS_TIMEOUT_S), self.ask("why", DECISIONS_SHOWN, timeout=STATUS_TIMEOUT_S)
        )

    def ask(self, verb: str, *arguments: Any, **named: Any) -> Any:
        """Call a control verb; answers what the deployment answers."""
        system = self._system or self._find()
        self._system = system
        try:
            return system.ask(verb, *arguments, **named)
        except FailedError:
            self._system = None
            raise
