"""The hosts of a domain: how grants get to them, and how turns come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.grant import Grant, Turn
from actors.host import HostActor, Stand
from actors.line import Lines
from actors.messages import GOODS, answered, is_remote, pickled, send

GLANCE = 5.0  # seconds that a host has to say what it is at


class Fleet:
    """Station hosts by their places: actors with lines to them, or plain objects that are called."""

    def __init__(self, hosts: Sequence[Any], outlet: Any = None, lines: bool | None = None, life: int = 0) -> None:
        self.hosts = list(hosts)
        by_line = any(is_remote(host.grant) for host in hosts) if lines is None else lines
        addresses = self.each(lambda _, host: send(host.line)) if by_line else []
        self.each(lambda place, host: send(host.join, place, self.hosts, outlet, addresses, life))
        self._lines = Lines(addresses) if by_line else None

    @classmethod
    def of(cls, count: int) -> Fleet:
        """New actors on this node, for one run in this process."""
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), False)
        return cls([HostActor.options(scheduling_strategy=here).remote() for _ in range(count)])

    def each(self, call: Callable[[int, Any], Any]) -> list[Any]:
        """The answers of all hosts, asked at once."""
        answers: list[Any] = answered([call(place, host) for place, host in enumerate(self.hosts)])
        return answers

    def open(self, stands: Sequence[Sequence[Stand]], folders: Sequence[str], measured: bool) -> None:
        """Let hosts, by their places, take stations in."""
        self.each(lambda place, host: send(host.open, pickled(list(stands[place])), folders, measured))

    def carry(self, place: int, grant: Grant) -> Turn:
        """Have a turn carried out: one is under way at a time, the single simulated CPU."""
        if self._lines is not None:
            return self._lines.carry(place, grant)
        turn: Turn = self.hosts[place].grant(grant)
        while turn.onward is not None:
            turn = self.hosts[turn.onward.place].grant(turn.onward.grant, turn.onward.outputs)
        return turn

    def doing(self) -> tuple[str, str, str] | None:
        """The station that is at work, at which host, and its stack: asked of threads that lay goods down."""
        for place, host in enumerate(self.hosts):
            told = send(host.doing, group=GOODS)
            try:
                told = ray.get(told, timeout=GLANCE) if isinstance(told, ray.ObjectRef) else told
            except RayError:
                continue  # it is gone, or hangs altogether
            if told is not None:
                return told[0], f"host {place}", told[1]
        return None

    def kill(self, place: int) -> bool:
        """End a host's process; whether it has one of its own."""
        host = self.hosts[place]
        if is_remote(host.grant):
            ray.kill(host)
        return is_remote(host.grant)

    def close(self) -> None:
        """Let the hosts be."""
        if self._lines is not None:
            self._lines.close()

    def end(self) -> None:
        """End the actors."""
        self.close()
        for host in self.hosts:
            ray.kill(host)
        self.hosts = []
