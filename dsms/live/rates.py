"""How fast tuples come and go of late: by stream, by station, and how much of the time anybody worked."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.clock import RealClock
from dsms.journal import FOLD, Journal
from dsms.live.sums import SLOTS, WHOLE, Floats, Numbers, Sums
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.runners.base import Step
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine


class Slot:
    """What came and what was done in one second."""

    __slots__ = ("number", "overhead", "stations", "streams")

    def __init__(self, number: int) -> None:
        self.number = number
        self.overhead = 0.0  # time of turns, where the work is done, besides what operators took of it
        self.streams: dict[str, int] = {}  # rows
        self.stations: dict[str, list[float]] = {}  # taken, made, time it worked

    def add(self, station: str, taken: float, made: float, busy: float) -> None:
        done = self.stations.setdefault(station, [0, 0, 0.0])
        done[0] += taken
        done[1] += made
        done[2] += busy


class Done(NamedTuple):
    """A station's work of late, and for how long it has been watched in that time."""

    taken: float
    made: float
    busy: float
    watched: float


class Rates(Observer):
    """Adds up turns and arrivals in slots of a second, of which it keeps the last few."""

    trusted = True
    _engine: Engine

    def __init__(self, plan: Plan) -> None:
        self._names = [stream.name for stream in plan.streams]
        self._since = dict.fromkeys([*self._names, *(station.name for station in plan.stations)], math.inf)
        self._begun = math.inf
        self.rows = dict.fromkeys(self._names, 0)  # from the beginning
        self._slots: dict[int, Slot] = {}  # by the second they begin at
        # Steps that began in one slot and ended in another; of these there is at most one a slot.
        self._long: deque[tuple[float, float, str, float, float]] = deque(maxlen=SLOTS + 1)
        self._held = Sums(["held"])  # time in which something was
        self._begins = self._ends = -math.inf  # of the slot that runs
        # Where tuples may have to wait for others: turns since the journal was read, their starts and how many steps.
        self._turns: deque[tuple[float, int]] = deque(maxlen=2 * FOLD)

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
            self._slot.overhead += max(0.0, self._occupied - before - sum(step[3] for step in steps))
        for step in steps:
            end = start + step[3] * self._pace
            if end >= self._ends or start < self._begins:
                self._across(start, end, step)
            else:
                done = self._stations.get(step[0].station.name)
                if done is None:
                    done = self._stations[step[0].station.name] = [0, 0, 0.0]
                done[0] += step[1]
                done[1] += step[2]
                done[2] += end - start
            start = end

    def read(self, journal: Journal) -> None:
        if not self._real or not journal.instants:
            return
        instants = np.fromiter(journal.instants, np.float64, len(journal.instants))
        waiting = np.fromiter(journal.held, np.float64, len(instants)) > 0
        if self._merges:
            waiting &= _in_turns(instants, self._turns)
            self._turns.clear()
        instants = np.maximum(instants, self._last)
        before = np.append(self._last, instants[:-1])
        self._held.over(before[waiting], instants[waiting], np.zeros(int(waiting.sum()), np.int64))
        self._last = float(instants[-1])

    def settle(self, now: float) -> None:
        """Between two turns, all has been read: nothing has changed since, up to now."""
        if self._real and self._engine.ledger.held > 0 and not self._merges:
            self._held.over(np.array([self._last]), np.array([now]), np.zeros(1, np.int64))
        self._last = max(now, self._last)
        self._held.advance(now)

    def shares(self, now: float) -> tuple[float, float]:
        """The parts of recent time in which an operator worked, and in which none did though something was held."""
        watched = now - max(self._begun, math.floor(now) - WHOLE)
        if watched <= 0:
            return 0.0, 0.0
        working = sum(busy for _, _, busy in self._work(now).values())
        # In virtual time work begins as soon as it may; what is left between is tuples that wait for others.
        turns = working + sum(slot.overhead for slot in self._recent(now))
        idle = float(self._held.totals()[0, 0]) - turns if self._real else 0.0
        return min(1.0, working / watched), min(1.0, max(0.0, idle / watched))

    def stream(self, name: str, now: float) -> float:
        """Rows of it per second."""
        watched = self._watched(name, now)
        return sum(slot.streams.get(name, 0) for slot in self._recent(now)) / watched if watched > 0 else 0.0

    def stations(self, now: float) -> dict[str, Done]:
        """What each did of late."""
        work = self._work(now)
        names = [station.name for station in self._engine.plan.stations]
        return {name: _done(work.get(name, (0, 0, 0.0)), self._watched(name, now)) for name in names}

    def carried(self, plan: Plan, now: float) -> Rates:
        """The same for another plan: what is known of streams and stations that stay goes on."""
        after = Rates(plan)
        after._engine, after._last, after._begun = self._engine, self._last, self._begun
        after._pace, after._real, after._merges = self._pace, self._real, self._merges
        after._slots, after._long, after._held = self._slots, self._long, self._held
        after._since = {name: self._since.get(name, since) for name, since in after._since.items()}
        after.rows = {name: self.rows.get(name, 0) for name in after.rows}
        return after

    def _recent(self, now: float) -> list[Slot]:
        return [slot for slot in self._slots.values() if slot.number >= math.floor(now) - WHOLE]

    def _watched(self, name: str, now: float) -> float:
        return now - max(self._since[name], math.floor(now) - WHOLE)

    def _roll(self, now: float) -> None:
        """Go on to the slot of this instant."""
        number = math.floor(now)
        self._slot = self._at(number)
        self._begins, self._ends, self._stations = number, number + 1, self._slot.stations

    def _at(self, number: int) -> Slot:
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = Slot(number)
            if len(self._slots) > 2 * SLOTS:
                self._slots = {n: kept for n, kept in self._slots.items() if n >= number - WHOLE}
        return slot

    def _across(self, start: float, end: float, step: Step) -> None:
        """A step that was not in one slot, or not in the last."""
        name = step[0].station.name
        if math.floor(start) == math.floor(end):
            if end >= self._ends:
                self._roll(end)
            self._at(math.floor(end)).add(name, step[1], step[2], end - start)
            return
        self._long.append((start, end, name, step[1], step[2]))
        if end >= self._ends:
            self._roll(end)

    def _work(self, now: float) -> dict[str, list[float]]:
        """By station what was taken, made, and how long it worked in the last seconds."""
        horizon, whole = math.floor(now) - WHOLE, Slot(0)
        for slot in self._recent(now):
            for name, (taken, made, busy) in slot.stations.items():
                whole.add(name, taken, made, busy)
        for start, end, name, taken, made in self._long:
            if end >= horizon:
                whole.add(name, taken, made, end - max(start, horizon))
        return whole.stations


def _in_turns(instants: Floats, turns: Sequence[tuple[float, int]]) -> NDArray[np.bool_]:
    """Whether time up to each instant was a turn's: what is held between turns may have to wait for other tuples."""
    starts, counts = np.array([turn[0] for turn in turns]), np.array([turn[1] for turn in turns], np.int64)
    first = np.searchsorted(instants, starts, side="right")  # of the instants of each turn's steps
    size = len(instants) + 1
    begun: Numbers = np.bincount(first, minlength=size)
    over: Numbers = np.bincount(np.minimum(first + counts, size - 1), minlength=size)
    return np.cumsum(begun - over)[:-1] > 0


def _done(work: Sequence[float], watched: float) -> Done:
    taken, made, busy = work
    return Done(taken, made, busy, watched)
