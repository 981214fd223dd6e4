"""A sliding-window join of abstract tuples: what a tuple gives goes by how many of the other stream came before it.

Sutherland, Raindrop thesis: any two tuples received within 200 ms of each other are tested against the predicate. So
twice the rate makes four times the results, which an operator of a fixed selectivity would not show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dsms.arrivals import Floats
from dsms.clock import Clock
from dsms.fates import Counts, Identities, mix, name_hash
from dsms.ledger import Ledger
from dsms.operators import Abstract
from dsms.plan import Plan, Station
from dsms.runners.tuples import Flow, TupleRunner
from dsms.schedule import Chunk

LENGTH = 0.2  # seconds


@dataclass(eq=False)
class WindowJoin(Abstract):
    """Every pair within the window passes by a chance of its own, drawn from who the later one is."""

    chance: float = 0.0
    when: Floats = field(default_factory=lambda: np.empty(0))  # of what it is asked next: when it arrived
    ports: Counts = field(default_factory=lambda: np.empty(0, np.int64))  # and by which input
    recent: list[Floats] = field(default_factory=lambda: [np.empty(0), np.empty(0)])

    def outputs(self, identity: Identities) -> Counts:
        met = np.zeros(len(identity), np.int64)
        whole = [np.concatenate((self.recent[port], self.when[self.ports == port])) for port in (0, 1)]
        for port in (0, 1):
            mine, others = self.ports == port, whole[1 - port]
            # Of two that arrive together the one by the first input is the earlier: each pair counts once.
            upto = np.searchsorted(others, self.when[mine], side="right" if port else "left")
            met[mine] = upto - np.searchsorted(others, self.when[mine] - LENGTH)
        if len(self.when):
            self.recent = [side[side >= self.when[-1] - LENGTH] for side in whole]
        return self._passed(identity, met)

    def _passed(self, identity: Identities, met: Counts) -> Counts:
        """Of so many pairs each, how many satisfy the predicate."""
        of = np.repeat(np.arange(len(met)), met)
        place = (np.arange(len(of)) - np.repeat(np.cumsum(met) - met, met)).astype(np.uint64)
        salt = np.uint64((name_hash(self.name) + self.seed * 0xA24BAED4963EE407) % 2**64)
        drawn = mix(mix(identity[of] ^ salt) + place * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)
        passed = drawn.astype(np.float64) * 2.0**-53 < self.chance
        return np.bincount(of[passed], minlength=len(met)).astype(np.int64)


class WindowRunner(TupleRunner):
    """Runs abstract plans whose operators of two inputs are joins of windows."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock, chance: float) -> None:
        super().__init__(plan, ledger, clock)
        self._first, self._instants = 0, np.empty(0)  # of the arrivals that are expected
        for station in plan.stations:
            if len(station.inputs) == 2:
                join = WindowJoin(cost=1.0, name=station.name, chance=chance).fresh(plan.settings)
                self._operators[station.index] = join

    def expect(self, chunk: Chunk) -> None:
        self._first, self._instants = chunk.first, np.array(chunk.instants)
        super().expect(chunk)

    def _draw(self, station: Station, operator: Abstract, flow: Flow) -> Flow:
        if isinstance(operator, WindowJoin):
            operator.when, operator.ports = self._instants[flow.seq - self._first], flow.port
        return super()._draw(station, operator, flow)
