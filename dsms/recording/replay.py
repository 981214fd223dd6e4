"""A recorded run over again in virtual time: rows come as they came, turns take what they took, another decides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from dsms.clock import Clock, VirtualClock
from dsms.engine import Engine
from dsms.ledger import Ledger
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.recording.lots import Lot, LotRunner
from dsms.recording.measured import Measured
from dsms.recording.recording import Recording
from dsms.recording.replica import replica
from dsms.statistics import KINDS


class LadenClock(VirtualClock):
    """Virtual time in which some passes between a turn and the next, and work takes more or less than its cost."""

    exact = False

    def __init__(self, recording: Recording, measured: Measured) -> None:
        super().__init__()
        about = recording.about
        self.slice, self.budget = about["slice"], about["budget"]
        self._each, self._stretch = measured.pace.line()
        self._measured = about["clock"] == "wall"
        self._owed = 0.0
        self._now = self._ready = recording.since

    def begin(self) -> None:
        """A turn begins: what is left of the time after the one before is spent with its first step."""
        self._owed = max(0.0, self._ready - self._now)

    def spend(self, cost: float) -> float:
        owed, self._owed = self._owed, 0.0
        now = super().spend(owed + cost * self._stretch / self.budget)
        self._ready = now + self._each
        return now

    def meter(self) -> float | None:
        return 0.0 if self._measured else None  # whether turns were cut by declared costs


class _Turns(Observer):
    """Tells the clock of every turn."""

    trusted = True

    def __init__(self, clock: LadenClock) -> None:
        self._clock = clock

    def begin(self, now: float) -> None:
        self._clock.begin()


class Replay(Engine):
    """An engine whose policies know of stations and streams at first what was known then, not what was measured."""

    def __init__(self, plan: Plan, policy: Policy, recording: Recording, **engine: Any) -> None:
        self._recording = recording
        super().__init__(plan, policy, **engine)

    def start(self, policy: Policy) -> None:
        declared = replica(self._recording, Measured(), math.inf, listed=False)
        rates = [one["rate"] or 1.0 for one in self._recording.about["streams"]]
        self.unwatch(self.statistics)
        self.statistics = KINDS[declared.settings.statistics](declared, rates)
        self.watch(self.statistics)
        super().start(policy)


class LotReplay(Replay):
    """One into which lots come at the instants at which they were admitted."""

    runner: LotRunner

    def __init__(self, plan: Plan, policy: Policy, recording: Recording, until: float, **engine: Any) -> None:
        places = {stream.name: place for place, stream in enumerate(plan.streams)}
        self._lots = _lots(recording, places, until)
        self._lot: tuple[int, float, int, float] | None = None
        super().__init__(plan, policy, recording, **engine)

    def _look_ahead(self) -> None:
        self._lot = next(self._lots, None)
        self._next_arrival = math.inf if self._lot is None else self._lot[1]
        self._next_event = min(self._next_arrival, self._cut)

    def _admit(self, limit: float, inclusive: bool) -> None:
        while self._next_event < limit or (inclusive and self._next_event == limit):
            if self._lot is None or self._next_arrival > self._cut:
                return
            place, instant, rows, lag = self._lot
            self.elapse(instant)
            self._hold(place, rows, self.runner.bring(place, Lot(self.admitted, instant - lag, instant, rows)))
            self.admitted += rows
            for tell in self._on_arrive:
                tell(instant, place, rows)
            self._look_ahead()


def _lots(recording: Recording, places: dict[str, int], until: float) -> Iterator[tuple[int, float, int, float]]:
    """Stream, instant, rows and lag of all that came up to an instant."""
    for part in recording.table("arrivals"):
        codes, names = part["stream"]
        columns = (part["at"].tolist(), part["rows"].tolist(), part["lag"].tolist())
        for code, at, rows, lag in zip(codes.tolist(), *columns, strict=True):
            if at > until:
                return
            yield places[names[code]], at, rows, lag


def engine_for(
    recording: Recording, measured: Measured, policy: Policy, observers: Sequence[Observer], until: float, cut: float
) -> Engine:
    """An engine that is about to go through the recorded arrivals up to an instant; a cut ends it, done or not."""
    listed = recording.about["clock"] == "virtual"  # every tuple has its own instant there, and its own fate
    plan = replica(recording, measured, until, listed)
    if listed:
        return Replay(plan, policy, recording, observers=observers, cut=cut)
    clock = LadenClock(recording, measured)
    live = recording.about["runtime"] == "live"
    return LotReplay(
        plan,
        policy,
        recording,
        until,
        clock=clock,
        runner=partial(_runner, live),
        observers=[_Turns(clock), *observers],
        cut=cut,
    )


def _runner(apart: bool, plan: Plan, ledger: Ledger, clock: Clock) -> LotRunner:
    runner = LotRunner(plan, ledger, clock)
    runner.apart = apart
    return runner
