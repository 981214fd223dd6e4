"""A sliding-window join of abstract tuples: a tuple's results depend on the other stream's arrivals in the window.

Sutherland, Raindrop thesis: any two tuples that arrive within 200 ms of each other are tested against the predicate. So
twice the rate makes four times the results, which an operator of fixed selectivity would not show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dsms.arrivals import Floats
from dsms.clock import Clock
from dsms.data.outcomes import Counts, Identities, hash_name, mix_bits
from dsms.engine.arrival_schedule import ArrivalChunk
from dsms.engine.ledger import Ledger
from dsms.engine.runners.tuples import TupleColumns, TupleRunner
from dsms.operators import AbstractOperator
from dsms.plan.graph import Plan, Station

LENGTH_S = 0.2  # of the window


@dataclass(eq=False)
class WindowJoin(AbstractOperator):
    """Joins every pair within the window with a fixed probability, drawn from the later tuple's identity."""

    chance: float = 0.0  # probability that a pair satisfies the predicate
    when: Floats = field(default_factory=lambda: np.empty(0))  # arrival instants of the tuples that `outputs` gets next
    ports: Counts = field(default_factory=lambda: np.empty(0, np.int64))  # the inputs of the same tuples
    recent: list[Floats] = field(default_factory=lambda: [np.empty(0), np.empty(0)])  # instants in each input's window

    def outputs(self, identity: Identities) -> Counts:
        partners = np.zeros(len(identity), np.int64)
        whole = [np.concatenate((self.recent[port], self.when[self.ports == port])) for port in (0, 1)]
        for port in (0, 1):
            mine, others = self.ports == port, whole[1 - port]
            # Of two simultaneous tuples the one of the first input counts as earlier: each pair is tested once.
            end = np.searchsorted(others, self.when[mine], side="right" if port else "left")
            partners[mine] = end - np.searchsorted(others, self.when[mine] - LENGTH_S)
        if len(self.when):
            self.recent = [side[side >= self.when[-1] - LENGTH_S] for side in whole]
        return self._count_passing(identity, partners)

    def _count_passing(self, identity: Identities, partners: Counts) -> Counts:
        """How many of each tuple's pairs satisfy the predicate."""
        of = np.repeat(np.arange(len(partners)), partners)
        place = (np.arange(len(of)) - np.repeat(np.cumsum(partners) - partners, partners)).astype(np.uint64)
        salt = np.uint64((hash_name(self.name) + self.seed * 0xA24BAED4963EE407) % 2**64)
        drawn = mix_bits(mix_bits(identity[of] ^ salt) + place * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)
        passed = drawn.astype(np.float64) * 2.0**-53 < self.chance
        return np.bincount(of[passed], minlength=len(partners)).astype(np.int64)


class WindowRunner(TupleRunner):
    """Runs abstract plans in which every operator with two inputs is a window join."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock, chance: float) -> None:
        super().__init__(plan, ledger, clock)
        self._first, self._instants = 0, np.empty(0)  # sequence number of the expected chunk's first arrival; instants
        for station in plan.stations:
            if len(station.inputs) == 2:
                join = WindowJoin(cost=1.0, name=station.name, chance=chance).fresh(plan.settings)
                self._operators[station.index] = join

    def expect(self, chunk: ArrivalChunk) -> None:
        self._first, self._instants = chunk.first, np.array(chunk.instants)
        super().expect(chunk)

    def _draw(self, station: Station, operator: AbstractOperator, flow: TupleColumns) -> TupleColumns:
        if isinstance(operator, WindowJoin):
            operator.when, operator.ports = self._instants[flow.seq - self._first], flow.port
        return super()._draw(station, operator, flow)
