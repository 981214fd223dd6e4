"""A host as the place where a turn is carried on: what it works off, passes on and puts out."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import ray

from actors.grant import Did, Grant, Mark, Output
from actors.messages import LARGE, Result, send
from dsms.batch import Batch

if TYPE_CHECKING:
    from actors.host import Host, Stand

BULK = 1024 * 1024  # bytes of results that wait for others of their turn, so that one call takes them all


class Visiting:
    """One host as the place where a turn is carried on."""

    def __init__(self, host: Host, grant: Grant) -> None:
        self._host, self._grant = host, grant
        self.outputs: dict[int, list[Output]] = {}  # by host: what was made for it
        self._results: list[Result] = []
        self._bytes = 0.0  # of them

    def holds(self, stop: Mark) -> bool:
        return stop.place == self._host.place

    def visit(self, stop: Mark, at: float, startup: float, most: float) -> tuple[float, float, float]:
        stand = self._host.stands[stop.station]
        self._host.fill(stand, stop.port, stop.due)
        self._host.working = stop.station, threading.get_ident()
        outcome, made = stand.goods.work(stop.port, startup, most)
        self._host.working = None
        stop.oldest = outcome.head
        if outcome.made:
            self._pass_on(stand, made, at + outcome.cost)
            for reader in stop.feeds:
                reader.due += 1
                reader.oldest = min(reader.oldest, outcome.seq)
        left, bring = len(outcome.gone) > 0, self._grant.bring
        if left and not bring:
            self._put_out(stand.query, made)
        self._grant.did.append(Did(stop.index, outcome, made if left and bring else None))
        return outcome.taken, outcome.made, outcome.cost

    def hand_out(self) -> None:
        """Let results go that have waited for more."""
        if self._results and self._host.outlet is not None:
            life = (self._host.life,) if self._host.life else ()
            self._host.gave(send(self._host.outlet.take, self._results, *life))
        self._results, self._bytes = [], 0.0

    def _pass_on(self, stand: Stand, made: Batch, since: float) -> None:
        """Into the queues of those who read it: here at once, elsewhere with all that goes there."""
        stand.made += 1
        away = {way.place for way in stand.ways} - {self._host.place}
        sent: Any = ray.put(made) if len(away) > 1 and made.memory() > LARGE else made
        for place, station, port in stand.ways:
            if place == self._host.place:
                reader = self._host.stands[station]
                reader.goods.put(port, made, since)
                reader.got[port] = stand.made
            else:
                self.outputs.setdefault(place, []).append(Output(station, port, stand.made, sent, since))

    def _put_out(self, query: str, made: Batch) -> None:
        """Results go to whoever takes them, numbered without gaps."""
        number = self._grant.results[query] = self._grant.results.get(query, 0) + 1
        self._results.append((query, number, made))
        self._bytes += made.memory()
        if self._bytes > BULK:
            self.hand_out()
