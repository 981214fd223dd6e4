"""How much memory a domain takes: what its queues hold, in as many copies as there are, and what its operators keep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dsms.clock import stopwatch
from dsms.live.gate import Limits
from dsms.live.machine import memory
from dsms.live.setup import Setup

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.live.watch import Watch

SHARE = 4  # all domains of a machine together may take this part of its memory
STATE = 5.0  # seconds for which the size of operators' state is good: to look at it takes a while
NEAR = 0.1  # the same where it may be too large
SOME = 1 / 16  # of the limit: when as much has come since, it is good no longer
LARGER = 4  # times what has come since it was looked at, it may be more by: indices and results of joins are in it


class Occupancy:
    """Of its own it knows only how large operators' state was of late."""

    def __init__(self, setup: Setup) -> None:
        share = memory() / SHARE / setup.domains if setup.most_bytes is None else setup.most_bytes
        self.limits = Limits(math.inf if setup.most_rows is None else setup.most_rows, share)
        self._state: Mapping[str, float] = {}
        self._looked = -math.inf
        self._came = 0.0  # bytes, since then

    def came(self, size: float) -> None:
        """Rows of so many bytes are in."""
        self._came += size

    def part(self, watch: Watch, engine: Engine) -> float:
        """How much of the limits is taken: rows that are shared count once, bytes for every station they wait for."""
        waiting, known = queued(watch, engine), sum(self._state.values())
        if waiting + known + LARGER * self._came > self.limits.bytes:
            much = self._came > SOME * self.limits.bytes
            known = sum(self.state(engine, 0.0 if much else NEAR).values())
        return self.limits.part(engine.ledger.held, waiting + known)

    def largest(self) -> str:
        """Which operator keeps most, as it was last looked at."""
        if not self._state:
            return "operators keep nothing"
        name = max(self._state, key=lambda name: self._state[name])
        return f"operator {name!r} keeps {self._state[name] / 1e6:,.1f} MB"

    def state(self, engine: Engine, good: float = STATE) -> Mapping[str, float]:
        """By station: the bytes that its operator keeps, looked at so many seconds ago at most."""
        if stopwatch() - self._looked > good:
            self._state, self._looked, self._came = engine.runner.state_bytes(), stopwatch(), 0.0
        return self._state


def queued(watch: Watch, engine: Engine) -> float:
    """The bytes in all queues: where several processes read a row, each has it."""
    return sum(watch.times.queue_bytes(station.index) for station in engine.plan.stations)
