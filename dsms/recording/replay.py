"""Replays a recorded run in virtual time under another policy: same arrivals, measured costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from dsms.clock import Clock, VirtualClock
from dsms.engine.engine import Engine
from dsms.engine.ledger import Ledger
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.engine.runners import Runner, inline_runner
from dsms.engine.statistics import STATISTICS_KINDS
from dsms.plan.graph import Plan
from dsms.recording.abstract_plan import build_replica_plan
from dsms.recording.lot_runner import GroupRunner, TupleGroup
from dsms.recording.measured_costs import RecordedWork
from dsms.recording.prediction import ALL_CAUSES, Causes
from dsms.recording.recording import Recording


class ReplayClock(VirtualClock):
    """Virtual time in which work takes its cost times a measured factor."""

    exact = False

    def __init__(self, recording: Recording, stretch: float, has_slice: bool) -> None:
        super().__init__()
        about = recording.about
        self.slice, self.budget = about["slice"] if has_slice else None, about["budget"]
        self._pace = stretch / self.budget
        if about["clock"] == "wall":  # the slice counted all time that passed, not the work alone
            self.budget /= max(stretch, 1e-9)
        self._now = recording.since

    def spend(self, cost: float) -> float:
        return super().spend(cost * self._pace)


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

    def __init__(
        self, plan: Plan, policy: Policy, recording: Recording, until: float, late_rows: bool, **engine: Any
    ) -> None:
        places = {stream.name: place for place, stream in enumerate(plan.streams)}
        self._lots = _read_groups(recording, places, until)
        if not late_rows:
            due = [(place, max(at - lag, recording.since), rows, 0.0) for place, at, rows, lag in self._lots]
            self._lots = iter(sorted(due, key=itemgetter(1)))
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
    causes: Causes = ALL_CAUSES,
) -> Engine:
    """Make an engine for the recorded arrivals up to an instant; it stops at `cut`, even with work left."""
    about, hosts = recording.about, recording.hosts()
    listed = about["clock"] == "virtual"  # every tuple has its own instant and its own outcome
    plan = build_replica_plan(recording, measured, until, listed)
    overhead = measured.pace.fit()
    turn, hop = (plan.settings.turn_cost, plan.settings.hop_cost) if listed else (overhead.turn, overhead.hop)
    plan.settings = replace(
        plan.settings,
        slice=plan.settings.slice if causes.slice else None,
        turn_cost=turn if causes.dead_time else 0.0,
        hop_cost=hop if causes.hops else 0.0,
    )
    if listed:
        runner = partial(_place_stations, inline_runner(plan), hosts)
        return ReplayEngine(plan, policy, recording, runner=runner, observers=observers, cut=cut)
    if not hosts and about["runtime"] == "live":  # recorded before hosts were: each station had its own
        hosts = {station.name: station.index for station in plan.stations}
    return GroupReplayEngine(
        plan,
        policy,
        recording,
        until,
        causes.late_rows,
        clock=ReplayClock(recording, overhead.stretch if causes.stretch else 1.0, causes.slice),
        runner=partial(_place_stations, GroupRunner, hosts),
        observers=observers,
        cut=cut,
    )


def _place_stations(kind: type[Runner], hosts: Mapping[str, int], plan: Plan, ledger: Ledger, clock: Clock) -> Runner:
    """Make a runner whose stations are at these hosts."""
    runner = kind(plan, ledger, clock)
    runner.places = dict(hosts)
    return runner
