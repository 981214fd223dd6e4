"""Migrates an engine to another plan between two turns; stations in both plans keep their queues and state."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsms.clock import Clock
from dsms.engine.engine import Engine
from dsms.engine.ledger import Backlog, Ledger
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy, as_stateful
from dsms.engine.runners import Runner
from dsms.engine.runners.station_state import StationState
from dsms.engine.watermarks import WatermarkState
from dsms.errors import DsmsError, PlanError, existing
from dsms.live.query_placement import find_colocated
from dsms.operators.instant_barrier import MIN_TIMESTAMP
from dsms.plan.estimate import Estimate
from dsms.plan.graph import Plan, Stream, find_surviving_stations

INITIAL_WATERMARKS = WatermarkState({}, MIN_TIMESTAMP)


@dataclass(frozen=True)
class StateTransfer:
    """The state of queries that move to another domain or process."""

    states: Mapping[str, StationState] = field(default_factory=dict)  # by station
    backlogs: Mapping[tuple[str, int], Backlog] = field(default_factory=dict)  # by station and port
    estimates: Mapping[str, Estimate] = field(default_factory=dict)  # by station
    deadlines: Mapping[str, int] = field(default_factory=dict)  # by station
    weights: Mapping[str, float] = field(default_factory=dict)  # by query
    results: Mapping[str, int] = field(default_factory=dict)  # by query: number of its last result batch
    reached: WatermarkState = INITIAL_WATERMARKS
    admitted: int = 0  # above all sequence numbers in the state
    ended: bool = False  # whether all streams have ended


def migrate(
    engine: Engine, plan: Plan, observers: Sequence[Observer] = (), transfer: StateTransfer | None = None
) -> Engine:
    """An engine that continues this one with another plan, and with state transferred from another domain.

    A policy that refuses the plan raises a PolicyError; then the old engine can continue.
    """
    moved = transfer or StateTransfer()
    _check_migration(engine, plan, moved)
    engine.fold()
    successor = _MigratedEngine(engine, plan, observers, moved)
    for leaving in {id(policy): policy for policy in (engine.control.chosen, engine.control.policy)}.values():
        as_stateful(leaving).end(engine)
    return successor


def extract_state(engine: Engine, queries: Collection[str]) -> StateTransfer:
    """Extract the state of these queries; the engine must then be migrated to a plan without them."""
    for name in queries:
        if left := sorted(set(find_colocated(engine.plan, name)) - set(queries)):
            raise PlanError(f"query {name!r} cannot move without {left}: they share operators", file=engine.plan.name)
    names = {station.name for station in engine.plan.stations if station.query.name in queries}
    return _collect_state(engine, queries, engine.row_runner.extract_states(names))


def snapshot_state(engine: Engine) -> StateTransfer:
    """Copy the state of all queries without their operators' state; the engine continues."""
    engine.fold()
    found = _collect_state(engine, list(engine.control.weights), {})
    estimates = {name: copy.copy(one) for name, one in found.estimates.items()}
    return replace(found, estimates=estimates, ended=engine._progress.ended)


def _collect_state(engine: Engine, queries: Collection[str], states: Mapping[str, StationState]) -> StateTransfer:
    stations = [station for station in engine.plan.stations if station.query.name in queries]
    names = {station.name for station in stations}
    streams = {p.name for station in stations for p in station.inputs if isinstance(p, Stream)}
    return StateTransfer(
        states,
        _read_backlogs(engine, names),
        engine.statistics.known(names),
        {s.name: engine.runner.deadlines[s.index] for s in stations if s.index in engine.runner.deadlines},
        {name: engine.control.weights[name] for name in queries},
        {name: engine.runner.results[name] for name in queries},
        engine._progress.snapshot(streams),
        engine.admitted,
    )


class _MigratedEngine(Engine):
    """An engine that takes over the state of another when it starts."""

    def __init__(self, before: Engine, plan: Plan, observers: Sequence[Observer], moved: StateTransfer) -> None:
        self._before, self._moved, self._watching = before, moved, observers
        self._staying = find_surviving_stations(before.plan, plan)
        # A copy of the policy: the old engine may have to continue with the original.
        policy, sink, aside = copy.copy(before.control.chosen), before.runner.sink, before.runner.on_dead_letter
        super().__init__(plan, policy, clock=before.clock, runner=self._runner, sink=sink, aside=aside)
        self.row_runner.finish_migration(before.row_runner)
        del self._before, self._moved, self._staying, self._watching  # do not keep all earlier engines alive

    def start(self, policy: Policy) -> None:
        before, moved = self._before, self._moved
        self.admitted = max(before.admitted, moved.admitted)  # new rows get later numbers than all present ones
        self.starvations, self.overdue, self.scheduling = before.starvations, before.overdue, before.scheduling
        self.journal.longest_wait = before.journal.longest_wait
        self.control.migrate_from(before.control, moved.weights)
        self._progress.restore(before._progress.snapshot([s.name for s in before.plan.streams]))
        self._progress.restore(moved.reached)
        self._progress.ended = before._progress.ended or moved.ended
        self.statistics.migrate_from(before.statistics, self._staying, moved.estimates)
        self._cut = before._cut
        self.ledger.signal_end(before.ledger.has_ended)
        self.unwatch(self.statistics)
        self.watch(*self._watching, self.statistics)  # observers see the restored state
        try:
            super().start(policy)
        except Exception:
            new = [station.name for station in self.plan.stations if station.name not in self._staying]
            self.row_runner.drop_states(new)
            raise

    def _runner(self, plan: Plan, ledger: Ledger, clock: Clock) -> Runner:
        """Keep station state in place, and restore the ledger to match."""
        moved = self._moved
        runner = self._before.row_runner.migrate(plan, ledger, moved.states)
        runner.results.update(moved.results)
        ledger.restore({**moved.backlogs, **_read_backlogs(self._before, self._staying)})
        for station in plan.stations:
            if station.name in moved.deadlines:
                runner.deadlines[station.index] = moved.deadlines[station.name]
        return runner


def _read_backlogs(engine: Engine, stations: Collection[str]) -> dict[tuple[str, int], Backlog]:
    """The backlog of each queue of these stations."""
    queues = [queue for queue in engine.ledger.queues if queue.count and queue.station.name in stations]
    return {
        (queue.station.name, queue.port): Backlog(queue.count, queue.oldest, size)
        for queue, size in zip(queues, engine.row_runner.held_bytes(queues), strict=True)
    }


def _check_migration(engine: Engine, plan: Plan, moved: StateTransfer) -> None:
    """Refuse a plan or a transfer that does not fit the engine."""
    if plan.settings != engine.plan.settings:
        raise DsmsError("the new plan has other settings in [run]: the settings of a running plan cannot change")
    if scheduled := [s.name for s in (*engine.plan.streams, *plan.streams) if s.arrivals and s.consumers]:
        raise DsmsError(f"stream {scheduled[0]!r} has its own arrivals: queries can change only if all rows are pushed")
    here, after = ({station.name for station in given.stations} for given in (engine.plan, plan))
    for name in moved.states:
        if name in here:
            raise PlanError(f"transferred state of operator {name!r}, which already exists", file=plan.name)
        if name not in after:
            raise PlanError(f"transferred state of {name!r}: no such operator{existing(name, after)}", file=plan.name)
