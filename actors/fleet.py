"""The hosts of a domain: how grants get to them, and how turns come back."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

import ray

from actors.grant import Grant, Turn
from actors.host import HostActor, Stand
from actors.messages import GOODS, answered, pickled, send
from dsms.errors import OperatorError

SILENCE = 5.0  # seconds without an answer after which hosts are asked whether they are still there


class Fleet:
    """Station hosts by their places."""

    def __init__(self, hosts: Sequence[Any], home: Any = None, outlet: Any = None) -> None:
        self.hosts, self._home, self._outlet = list(hosts), home, outlet
        self._turns: queue.SimpleQueue[Turn | Exception] = queue.SimpleQueue()  # that came home by another host
        self._introduce()

    @classmethod
    def of(cls, count: int) -> Fleet:
        """New actors, for one run in this process."""
        return cls([HostActor.remote() for _ in range(count)])

    def each(self, call: Callable[[int, Any], Any]) -> list[Any]:
        """The answers of all hosts, asked at once."""
        answers: list[Any] = answered([call(place, host) for place, host in enumerate(self.hosts)])
        return answers

    def open(self, stands: Sequence[Sequence[Stand]], folders: Sequence[str], measured: bool) -> None:
        """Let hosts, by their places, take stations in."""
        self.each(lambda place, host: send(host.open, pickled(list(stands[place])), folders, measured))

    def carry(self, place: int, grant: Grant) -> Turn:
        """Have a turn carried out: one is under way at a time, the single simulated CPU."""
        turn: Turn | None = answered(send(self.hosts[place].grant, grant))
        while turn is None or turn.onward is not None:
            if turn is None or turn.onward is None:
                turn = self._come_home()
            else:
                onward = turn.onward
                turn = answered(send(self.hosts[onward.place].grant, onward.grant, onward.outputs))
        return turn

    def done(self, turn: Turn | Exception) -> None:
        """A turn that passed through several hosts has come home."""
        self._turns.put(turn)

    def clear(self) -> None:
        """Let all hosts be as new."""
        self.each(lambda _, host: send(host.clear))

    def end(self) -> None:
        """End the actors."""
        for host in self.hosts:
            ray.kill(host)
        self.hosts = []

    def _introduce(self) -> None:
        self.each(lambda place, host: send(host.join, place, self.hosts, self._home, self._outlet))

    def _come_home(self) -> Turn:
        while True:
            try:
                turn = self._turns.get(timeout=SILENCE)
            except queue.Empty:
                self._all_there()
                continue
            if isinstance(turn, Exception):
                raise turn
            return turn

    def _all_there(self) -> None:
        """A turn may take long; a host that has died with it will never answer."""
        try:
            self.each(lambda _, host: send(host.there, group=GOODS))
        except ray.exceptions.RayActorError as error:
            raise OperatorError(f"a turn is lost with the process it was in: {error}") from error
