"""How fast tuples come and go of late: by stream, by station, and how much of the time anybody worked."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dsms.clock import RealClock
from dsms.journal import FOLD, Journal
from dsms.live.sums import Floats, Sums
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.runners.base import Step
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine

WORKING, WAITING = 0, 1  # the loop: an operator worked; something was held


class Rates(Observer):
    """Notes turns and arrivals as they come, and adds them up a few thousand at a time."""

    trusted = True
    _engine: Engine

    def __init__(self, plan: Plan) -> None:
        stations, streams = [s.name for s in plan.stations], [s.name for s in plan.streams]
        self._begin(Sums(stations, width=2), Sums(stations), Sums(streams), Sums(["working", "waiting"]))
        self.rows = np.zeros(len(streams), np.int64)  # by stream, from the beginning
        self._begun = False  # whether anything has been watched yet

    def _begin(self, flow: Sums, busy: Sums, streams: Sums, loop: Sums) -> None:
        self.flow, self.busy, self.streams, self.loop = flow, busy, streams, loop
        self._turns: deque[tuple[float, Sequence[Step], int]] = deque(maxlen=2 * FOLD)
        self._arrivals: list[tuple[float, int, int]] = []

    def attach(self, engine: Engine) -> None:
        self._engine, self._last = engine, engine.clock.now()
        self._instants = engine.journal.instants
        self._stations = np.array([queue.station.index for queue in engine.ledger.queues], np.int64)
        if not self._begun:
            known = (self.flow, self.busy, self.streams, self.loop)
            self._begin(*(Sums(table.names, self._last, table.width) for table in known))
            self._begun = True

    def arrive(self, now: float, stream: int, count: int) -> None:
        self._arrivals.append((now, stream, count))
        if len(self._arrivals) >= FOLD:
            self._add_arrivals()

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        self._turns.append((start, steps, len(self._instants)))

    def read(self, journal: Journal) -> None:
        self._add_arrivals()
        starts = np.array([turn[0] for turn in self._turns])
        if journal.instants:
            instants = np.maximum(np.array(journal.instants), self._last)
            waiting = np.array(journal.held) > 0
            if self._engine.ledger.merges:
                waiting &= self._in_turns(instants, starts)
            self._wait(np.append(self._last, instants[:-1])[waiting], instants[waiting])
            self._last = float(instants[-1])
        self._add_turns(starts)
        self._turns.clear()

    def settle(self, now: float) -> None:
        """Between two turns, all has been read: nothing has changed since, up to now."""
        if self._engine.ledger.held > 0 and not self._engine.ledger.merges:
            self._wait(np.array([self._last]), np.array([now]))
        self._last = max(now, self._last)
        for table in (self.flow, self.busy, self.streams, self.loop):
            table.advance(now)

    def shares(self, now: float) -> tuple[float, float]:
        """The parts of recent time in which an operator worked, and in which none did though something was held."""
        working, waiting = self.loop.rates(now)[:, 0].tolist()
        # In virtual time work begins as soon as it may; what is left between is tuples that wait for others.
        real = isinstance(self._engine.clock, RealClock)
        return min(1.0, working), min(1.0, max(0.0, waiting - working)) if real else 0.0

    def carried(self, plan: Plan, now: float) -> Rates:
        """The same for another plan: what is known of streams and stations that stay goes on."""
        after = Rates(plan)
        after._engine, after._begun, after._last = self._engine, True, self._last
        after._begin(
            self.flow.carried(after.flow.names, now),
            self.busy.carried(after.busy.names, now),
            self.streams.carried(after.streams.names, now),
            self.loop.carried(self.loop.names, now),
        )
        rows = dict(zip(self.streams.names, self.rows.tolist(), strict=True))
        after.rows[:] = [rows.get(name, 0) for name in after.streams.names]
        return after

    def _wait(self, since: Floats, until: Floats) -> None:
        self.loop.over(since, until, np.full(len(since), WAITING))

    def _in_turns(self, instants: Floats, starts: Floats) -> NDArray[np.bool_]:
        """Whether time up to each instant was a turn's: what waits between turns may have to wait for other tuples."""
        ends = np.array([turn[2] for turn in self._turns], np.int64)
        whose = np.searchsorted(ends, np.arange(len(instants)), side="right")
        return instants > np.append(starts, np.inf)[whose]

    def _add_arrivals(self) -> None:
        if self._arrivals:
            instants, streams, counts = map(np.array, zip(*self._arrivals, strict=True))
            self.streams.at(instants, streams, counts)
            np.add.at(self.rows, streams, counts)
            self._arrivals.clear()

    def _add_turns(self, starts: Floats) -> None:
        """Of these turns only those count that are recent, which in virtual time may be but the last few."""
        if not self._turns:
            return
        self.loop.advance(self._last)
        first = max(0, int(np.searchsorted(starts, self.loop.horizon)) - 1)
        turns = [self._turns[place] for place in range(first, len(self._turns))]
        steps = [step for turn in turns for step in turn[1]]
        stations = self._stations[[step[0].index for step in steps]]
        taken, made = np.array([step[1] for step in steps]), np.array([step[2] for step in steps])
        costs = np.array([step[3] for step in steps]) / self._engine.clock.budget
        counts = np.array([len(turn[1]) for turn in turns])
        ends = np.cumsum(costs)
        before = np.append(0.0, ends)[np.cumsum(counts) - counts]  # of all that its turn came after
        ends += np.repeat(starts[first:] - before, counts)
        self.flow.at(ends, stations * 2, taken)
        self.flow.at(ends, stations * 2 + 1, made)
        self.busy.over(ends - costs, ends, stations)
        self.loop.over(ends - costs, ends, np.full(len(ends), WORKING))
