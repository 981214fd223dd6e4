"""Which of a deployment's actors are dead: each is asked, and never more than once at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

GLANCE = 0.05  # seconds that answers are waited for


class Lookout:
    """Asks actors whether they are there; one that is busy is waited for, one that is gone is known soon."""

    def __init__(self) -> None:
        self._asked: dict[Any, ray.ObjectRef[Any]] = {}  # by actor

    def dead(self, actors: Mapping[str, Any]) -> set[str]:
        """The names of those that are gone."""
        self._asked = {one: call for one, call in self._asked.items() if one in actors.values()}
        for one in actors.values():
            if one not in self._asked:
                self._asked[one] = one.__ray_ready__.remote()
        ray.wait(list(self._asked.values()), num_returns=len(self._asked), timeout=GLANCE)
        gone = {one for one, call in list(self._asked.items()) if self._is_gone(one, call)}
        return {name for name, one in actors.items() if one in gone}

    def _is_gone(self, one: Any, call: ray.ObjectRef[Any]) -> bool:
        ready, _ = ray.wait([call], timeout=0)
        if not ready:
            return False
        del self._asked[one]
        try:
            ray.get(call)
        except RayActorError:
            return True
        except RayError:
            return False
        return False
