"""Replays a recorded run in virtual time under another policy: same arrivals, measured costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from dsms.clock import Clock, VirtualClock
from dsms.engine.engine import Engine
from dsms.engine.ledger import Ledger
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.statistics import STATISTICS_KINDS
from dsms.plan.graph import Plan
from dsms.recording.abstract_plan import build_replica_plan
from dsms.recording.lot_runner import GroupRunner, TupleGroup
from dsms.recording.measured_costs import RecordedWork
from dsms.recording.recording import Recording


class ReplayClock(VirtualClock):
    """Virtual time with the recorded overhead between turns; work takes its cost times a measured factor."""

    exact = False

    def __init__(self, recording: Recording, measured: RecordedWork) -> None:
        super().__init__()
        about = recording.about
        self.slice, self.budget = about["slice"], about["budget"]
        self._each, self._stretch = measured.pace.line()
        if about["clock"] == "wall":  # the slice counted all time that passed, not the work alone
            self.budget, self._stretch = self.budget / max(self._stretch, 1e-9), 1.0
        self._owed = 0.0
        self._now = self._ready = recording.since

    def begin(self) -> None:
        """Begin a turn: its first step also spends the rest of the overhead of the turn before."""
        self._owed = max(0.0, self._ready - self._now)

    def spend(self, cost: float) -> float:
        owed, self._owed = self._owed, 0.0
        now = super().spend(owed + cost * self._stretch / self.budget)
        self._ready = now + self._each
        return now


class _TurnObserver(Observer):
    """Reports every turn to the clock."""

    trusted = True

    def __init__(self, clock: ReplayClock) -> None:
        self._clock = clock

    def begin(self, now: float) -> None:
        self._clock.begin()


class ReplayEngine(Engine):
    """An engine whose policies start from the statistics known at the time, not from the measured ones."""

    def __init__(self, plan: Plan, policy: Policy, recording: Recording, **engine: Any) -> None:
        self._recording = recording
        super().__init__(plan, policy, **engine)

    def start(self, policy: Policy) -> None:
        declared = build_replica_plan(self._recording, RecordedWork(), math.inf, listed=False)
        rates = [one["rate"] or 1.0 for one in self._recording.about["streams"]]
        self.unwatch(self.statistics)
        self.statistics = STATISTICS_KINDS[declared.settings.statistics](declared, rates)
        self.watch(self.statistics)
        super().start(policy)


class GroupReplayEngine(ReplayEngine):
    """A replay engine that admits groups of tuples at their recorded instants."""

    runner: GroupRunner

    def __init__(self, plan: Plan, policy: Policy, recording: Recording, until: float, **engine: Any) -> None:
        places = {stream.name: place for place, stream in enumerate(plan.streams)}
        self._lots = _read_groups(recording, places, until)
        self._lot: tuple[int, float, int, float] | None = None
        super().__init__(plan, policy, recording, **engine)

    def _load_next_chunk(self) -> None:
        self._lot = next(self._lots, None)
        self._next_arrival = math.inf if self._lot is None else self._lot[1]
        self._next_event = min(self._next_arrival, self._cut)

    def _admit(self, limit: float, inclusive: bool) -> None:
        while self._next_event < limit or (inclusive and self._next_event == limit):
            if self._lot is None or self._next_arrival > self._cut:
                return
            place, instant, rows, lag = self._lot
            self.elapse(instant)
            self._hold(place, rows, self.runner.bring(place, TupleGroup(self.admitted, instant - lag, instant, rows)))
            self.admitted += rows
            for tell in self._on_arrive:
                tell(instant, place, rows)
            self._load_next_chunk()


def _read_groups(recording: Recording, places: dict[str, int], until: float) -> Iterator[tuple[int, float, int, float]]:
    """Stream, instant, rows and lag of all arrivals up to an instant."""
    for part in recording.table("arrivals"):
        codes, names = part["stream"]
        columns = (part["at"].tolist(), part["rows"].tolist(), part["lag"].tolist())
        for code, at, rows, lag in zip(codes.tolist(), *columns, strict=True):
            if at > until:
                return
            yield places[names[code]], at, rows, lag


def create_replay_engine(
    recording: Recording,
    measured: RecordedWork,
    policy: Policy,
    observers: Sequence[Observer],
    until: float,
    cut: float,
) -> Engine:
    """Make an engine for the recorded arrivals up to an instant; it stops at `cut`, even with work left."""
    listed = recording.about["clock"] == "virtual"  # every tuple has its own instant and its own outcome
    plan = build_replica_plan(recording, measured, until, listed)
    if listed:
        return ReplayEngine(plan, policy, recording, observers=observers, cut=cut)
    clock = ReplayClock(recording, measured)
    live = recording.about["runtime"] == "live"
    return GroupReplayEngine(
        plan,
        policy,
        recording,
        until,
        clock=clock,
        runner=partial(_create_runner, live),
        observers=[_TurnObserver(clock), *observers],
        cut=cut,
    )


def _create_runner(apart: bool, plan: Plan, ledger: Ledger, clock: Clock) -> GroupRunner:
    runner = GroupRunner(plan, ledger, clock)
    runner.apart = apart
    return runner
