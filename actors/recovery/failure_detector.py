"""Detects dead actors of a deployment: pings each of them, at most one ping at a time."""

from __future__ import annotations

from collections.abc import Mapping

import ray
from ray.exceptions import RayError

from actors.rpc.messages import check_ready
from actors.rpc.process_loss import is_process_gone

PING_WAIT_S = 0.05  # for answers, per round


class FailureDetector:
    """Pings actors; a busy one keeps its ping, a dead one is known soon."""

    def __init__(self) -> None:
        self._pings: dict[object, ray.ObjectRef[object]] = {}  # by actor

    def find_dead(self, actors: Mapping[str, object]) -> set[str]:
        """The names of actors whose process has ended."""
        self._pings = {actor: call for actor, call in self._pings.items() if actor in actors.values()}
        for actor in actors.values():
            if actor not in self._pings:
                self._pings[actor] = check_ready(actor)
        ray.wait(list(self._pings.values()), num_returns=len(self._pings), timeout=PING_WAIT_S)
        gone = {actor for actor, call in list(self._pings.items()) if self._is_gone(actor, call)}
        return {name for name, actor in actors.items() if actor in gone}

    def _is_gone(self, actor: object, call: ray.ObjectRef[object]) -> bool:
        ready, _ = ray.wait([call], timeout=0)
        if not ready:
            return False
        del self._pings[actor]
        try:
            ray.get(call)
        except RayError as error:
            return is_process_gone(error)
        return False
