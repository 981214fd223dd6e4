"""Measures recent rates of streams and stations, and the share of time in which operators ran."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.clock import RealClock
from dsms.data.journal import FLUSH_TURNS, Journal
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.measure.sliding_sums import SLOT_COUNT, WINDOW_S, Floats, Numbers, SlidingSums
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment

if TYPE_CHECKING:
    from dsms.engine.engine import Engine


class RateSlot:
    """Arrivals and work of one second."""

    __slots__ = ("number", "overhead", "stations", "streams")

    def __init__(self, number: int) -> None:
        self.number = number
        self.overhead = 0.0  # seconds of turns outside of operators
        self.streams: dict[str, int] = {}  # rows
        self.stations: dict[str, list[float]] = {}  # tuples taken, tuples made, seconds of work

    def add(self, station: str, taken: float, made: float, busy: float) -> None:
        done = self.stations.setdefault(station, [0, 0, 0.0])
        done[0] += taken
        done[1] += made
        done[2] += busy


class RecentWork(NamedTuple):
    """A station's recent work, and for how long it was observed."""

    taken: float
    made: float
    busy: float
    watched: float


class Rates(Observer):
    """Sums turns and arrivals in slots of one second, and keeps the last few."""

    trusted = True
    _engine: Engine

    def __init__(self, plan: Plan) -> None:
        self._names = [stream.name for stream in plan.streams]
        self._since = dict.fromkeys([*self._names, *(station.name for station in plan.stations)], math.inf)
        self._begun = math.inf
        self.rows = dict.fromkeys(self._names, 0)  # since the start
        self._slots: dict[int, RateSlot] = {}  # by the second they begin at
        # Steps that began in one slot and ended in another; at most one per slot.
        self._long: deque[tuple[float, float, str, float, float]] = deque(maxlen=SLOT_COUNT + 1)
        self._held = SlidingSums(["held"])  # seconds in which any tuple was held
        self._begins = self._ends = -math.inf  # of the present slot
        # For plans with merges: start and step count of the turns since the journal was read.
        self._turns: deque[tuple[float, int]] = deque(maxlen=2 * FLUSH_TURNS)

    def attach(self, engine: Engine) -> None:
        self._engine, self._last = engine, engine.clock.now()
        self._pace, self._real = 1 / engine.clock.budget, isinstance(engine.clock, RealClock)
        self._occupied = engine.runner.occupied
        self._merges = self._real and bool(engine.ledger.merges)
        self._begun = min(self._begun, self._last)
        self._since = {name: min(since, self._last) for name, since in self._since.items()}
        self._roll(self._last)

    def arrive(self, now: float, stream: int, count: int) -> None:
        if now >= self._ends:
            self._roll(now)
        name, rows = self._names[stream], self._slot.streams
        rows[name] = rows.get(name, 0) + count
        self.rows[name] += count

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._merges:
            self._turns.append((start, len(steps)))
        if self._occupied is not None:
            before, self._occupied = self._occupied, self._engine.runner.occupied or 0.0
            self._slot.overhead += max(0.0, self._occupied - before - sum(step.cost for step in steps))
        for step in steps:
            end = start + step.cost * self._pace
            if end >= self._ends or start < self._begins:
                self._across(start, end, step)
            else:
                done = self._stations.get(step.queue.station.name)
                if done is None:
                    done = self._stations[step.queue.station.name] = [0, 0, 0.0]
                done[0] += step.taken
                done[1] += step.made
                done[2] += end - start
            start = end

    def read(self, journal: Journal) -> None:
        if not self._real or not journal.instants:
            return
        instants = np.fromiter(journal.instants, np.float64, len(journal.instants))
        waiting = np.fromiter(journal.held, np.float64, len(instants)) > 0
        if self._merges:
            waiting &= _mask_turns(instants, self._turns)
            self._turns.clear()
        instants = np.maximum(instants, self._last)
        before = np.append(self._last, instants[:-1])
        self._held.over(before[waiting], instants[waiting], np.zeros(int(waiting.sum()), np.int64))
        self._last = float(instants[-1])

    def accrue_to(self, now: float) -> None:
        """Extend the last known state up to `now`; call it between two turns, when the journal is read."""
        if self._real and self._engine.ledger.held > 0 and not self._merges:
            self._held.over(np.array([self._last]), np.array([now]), np.zeros(1, np.int64))
        self._last = max(now, self._last)
        self._held.advance(now)

    def shares(self, now: float) -> tuple[float, float]:
        """The shares of recent time in which an operator ran, and in which none ran although tuples were held."""
        watched = now - max(self._begun, math.floor(now) - WINDOW_S)
        if watched <= 0:
            return 0.0, 0.0
        working = sum(busy for _, _, busy in self._work(now).values())
        # In virtual time work starts at once; the rest is tuples that wait in a merge.
        turns = working + sum(slot.overhead for slot in self._recent(now))
        idle = float(self._held.totals()[0, 0]) - turns if self._real else 0.0
        return min(1.0, working / watched), min(1.0, max(0.0, idle / watched))

    def stream(self, name: str, now: float) -> float:
        """Rows per second."""
        watched = self._watched(name, now)
        return sum(slot.streams.get(name, 0) for slot in self._recent(now)) / watched if watched > 0 else 0.0

    def stations(self, now: float) -> dict[str, RecentWork]:
        """The recent work of each station."""
        work = self._work(now)
        names = [station.name for station in self._engine.plan.stations]
        return {name: _make_work(work.get(name, (0, 0, 0.0)), self._watched(name, now)) for name in names}

    def migrate(self, plan: Plan, now: float) -> Rates:
        """The rates for another plan; streams and stations in both plans continue."""
        after = Rates(plan)
        after._engine, after._last, after._begun = self._engine, self._last, self._begun
        after._pace, after._real, after._merges = self._pace, self._real, self._merges
        after._slots, after._long, after._held = self._slots, self._long, self._held
        after._since = {name: self._since.get(name, since) for name, since in after._since.items()}
        after.rows = {name: self.rows.get(name, 0) for name in after.rows}
        return after

    def _recent(self, now: float) -> list[RateSlot]:
        return [slot for slot in self._slots.values() if slot.number >= math.floor(now) - WINDOW_S]

    def _watched(self, name: str, now: float) -> float:
        return now - max(self._since[name], math.floor(now) - WINDOW_S)

    def _roll(self, now: float) -> None:
        """Enter the slot of this instant."""
        number = math.floor(now)
        self._slot = self._at(number)
        self._begins, self._ends, self._stations = number, number + 1, self._slot.stations

    def _at(self, number: int) -> RateSlot:
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = RateSlot(number)
            if len(self._slots) > 2 * SLOT_COUNT:
                self._slots = {n: kept for n, kept in self._slots.items() if n >= number - WINDOW_S}
        return slot

    def _across(self, start: float, end: float, step: Step) -> None:
        """Count a step outside of the present slot or across two."""
        name = step.queue.station.name
        if math.floor(start) == math.floor(end):
            if end >= self._ends:
                self._roll(end)
            self._at(math.floor(end)).add(name, step.taken, step.made, end - start)
            return
        self._long.append((start, end, name, step.taken, step.made))
        if end >= self._ends:
            self._roll(end)

    def _work(self, now: float) -> dict[str, list[float]]:
        """Tuples taken, tuples made and seconds of work of each station in the recent window."""
        horizon, whole = math.floor(now) - WINDOW_S, RateSlot(0)
        for slot in self._recent(now):
            for name, (taken, made, busy) in slot.stations.items():
                whole.add(name, taken, made, busy)
        for start, end, name, taken, made in self._long:
            if end >= horizon:
                whole.add(name, taken, made, end - max(start, horizon))
        return whole.stations


def _mask_turns(instants: Floats, turns: Sequence[tuple[float, int]]) -> NDArray[np.bool_]:
    """Which intervals between instants belong to a turn; between turns tuples may wait in a merge."""
    starts, counts = np.array([start for start, _ in turns]), np.array([steps for _, steps in turns], np.int64)
    first = np.searchsorted(instants, starts, side="right")  # of the instants of each turn's steps
    size = len(instants) + 1
    begun: Numbers = np.bincount(first, minlength=size)
    over: Numbers = np.bincount(np.minimum(first + counts, size - 1), minlength=size)
    return np.cumsum(begun - over)[:-1] > 0


def _make_work(work: Sequence[float], watched: float) -> RecentWork:
    taken, made, busy = work
    return RecentWork(taken, made, busy, watched)
