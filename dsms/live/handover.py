"""From one plan to the next between two turns: what is in both goes on as if nothing had happened."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsms.clock import Clock
from dsms.engine import Engine
from dsms.errors import DsmsError, PlanError, existing
from dsms.goods import Goods
from dsms.ledger import Backlog, Ledger
from dsms.live.division import together
from dsms.observers import Observer
from dsms.operators.pending import BEGINNING
from dsms.plan import Plan, Stream, surviving
from dsms.policies.base import Policy
from dsms.progress import Reached
from dsms.runners import Runner
from dsms.statistics import Estimate

NOWHERE = Reached({}, BEGINNING)


@dataclass(frozen=True)
class Inventory:
    """What queries take along to another domain; it may go to another process."""

    goods: Mapping[str, Goods] = field(default_factory=dict)  # by station
    backlogs: Mapping[tuple[str, int], Backlog] = field(default_factory=dict)  # by station and port
    estimates: Mapping[str, Estimate] = field(default_factory=dict)  # by station
    deadlines: Mapping[str, int] = field(default_factory=dict)  # by station
    weights: Mapping[str, float] = field(default_factory=dict)  # by query
    results: Mapping[str, int] = field(default_factory=dict)  # by query: batches put out, where they are numbered
    reached: Reached = NOWHERE
    admitted: int = 0  # all that is in the goods is numbered below this
    ended: bool = False  # whether all streams were said to be over


def succeeded(
    engine: Engine, plan: Plan, observers: Sequence[Observer] = (), inventory: Inventory | None = None
) -> Engine:
    """An engine that goes on with another plan where this one stands, and with what has come from another domain.

    A policy that refuses the plan says so by a PolicyError; then the engine there was can go on as before.
    """
    moved = inventory or Inventory()
    _check(engine, plan, moved)
    engine.fold()
    successor = _Successor(engine, plan, observers, moved)
    for leaving in {id(policy): policy for policy in (engine.chosen, engine.policy)}.values():
        leaving.end(engine)
    return successor


def released(engine: Engine, queries: Collection[str]) -> Inventory:
    """What these queries take along; the engine is to be succeeded by one without them before it goes on."""
    for name in queries:
        if left := sorted(set(together(engine.plan, name)) - set(queries)):
            raise PlanError(f"query {name!r} cannot go without {left}: they share operators", file=engine.plan.name)
    names = {station.name for station in engine.plan.stations if station.query.name in queries}
    return _inventory(engine, queries, engine.runner.extracted(names))


def standing(engine: Engine) -> Inventory:
    """What all queries have but their goods, as it is at this instant; the engine goes on."""
    engine.fold()
    found = _inventory(engine, list(engine.weights), {})
    estimates = {name: copy.copy(one) for name, one in found.estimates.items()}
    return replace(found, estimates=estimates, ended=engine._progress.ended)


def _inventory(engine: Engine, queries: Collection[str], goods: Mapping[str, Goods]) -> Inventory:
    stations = [station for station in engine.plan.stations if station.query.name in queries]
    names = {station.name for station in stations}
    streams = {p.name for station in stations for p in station.inputs if isinstance(p, Stream)}
    return Inventory(
        goods,
        _backlogs(engine, names),
        engine.statistics.known(names),
        {s.name: engine.runner.deadlines[s.index] for s in stations if s.index in engine.runner.deadlines},
        {name: engine.weights[name] for name in queries},
        {name: engine.runner.results[name] for name in queries},
        engine._progress.reached(streams),
        engine.admitted,
    )


class _Successor(Engine):
    """An engine that does not begin at the beginning."""

    def __init__(self, before: Engine, plan: Plan, observers: Sequence[Observer], moved: Inventory) -> None:
        self._before, self._moved, self._watching = before, moved, observers
        self._staying = surviving(before.plan, plan)
        # A policy keeps its place in a round, and what it is told here must not reach the one that may have to go on.
        policy, sink, aside = copy.copy(before.chosen), before.runner.sink, before.runner.aside
        super().__init__(plan, policy, clock=before.clock, runner=self._runner, sink=sink, aside=aside)
        self.runner.settle(before.runner)
        del self._before, self._moved, self._staying, self._watching  # a long row of them is not to be kept

    def start(self, policy: Policy) -> None:
        before, moved = self._before, self._moved
        self.admitted = max(before.admitted, moved.admitted)  # what comes now is younger than all that is here
        self.starvations, self.overdue, self.scheduling = before.starvations, before.overdue, before.scheduling
        self.journal.longest_wait = before.journal.longest_wait
        self.qos = before.qos
        self.weights.update({**moved.weights, **{q: w for q, w in before.weights.items() if q in self.weights}})
        self._progress.resume(before._progress.reached([s.name for s in before.plan.streams]))
        self._progress.resume(moved.reached)
        self._progress.ended = before._progress.ended or moved.ended
        self.statistics.follow(before.statistics, self._staying, moved.estimates)
        self._cut, self._ended = before._cut, before._ended
        for merge in self.ledger.merges:
            merge.end(self._ended)
        self.unwatch(self.statistics)
        self.watch(*self._watching, self.statistics)  # who looks at how things stand finds them as they are
        try:
            super().start(policy)
        except Exception:
            new = [station.name for station in self.plan.stations if station.name not in self._staying]
            self.runner.let_go(new)
            raise

    def _runner(self, plan: Plan, ledger: Ledger, clock: Clock) -> Runner:
        """The goods stay where they are, and the ledger says so from the beginning."""
        moved = self._moved
        runner = self._before.runner.succeed(plan, ledger, moved.goods)
        runner.results.update(moved.results)
        ledger.restore({**moved.backlogs, **_backlogs(self._before, self._staying)})
        for station in plan.stations:
            if station.name in moved.deadlines:
                runner.deadlines[station.index] = moved.deadlines[station.name]
        return runner


def _backlogs(engine: Engine, stations: Collection[str]) -> dict[tuple[str, int], Backlog]:
    """What the queues of these stations hold."""
    queues = [queue for queue in engine.ledger.queues if queue.count and queue.station.name in stations]
    return {
        (queue.station.name, queue.port): Backlog(queue.count, queue.oldest, size)
        for queue, size in zip(queues, engine.runner.held_bytes(queues), strict=True)
    }


def _check(engine: Engine, plan: Plan, moved: Inventory) -> None:
    """Refuse what cannot be gone on with."""
    if plan.settings != engine.plan.settings:
        raise DsmsError("another plan has other settings in [run]: those of a plan that runs cannot change")
    if scheduled := [s.name for s in (*engine.plan.streams, *plan.streams) if s.arrivals and s.consumers]:
        raise DsmsError(f"stream {scheduled[0]!r} has arrivals of its own: queries come and go where rows are pushed")
    here, after = ({station.name for station in given.stations} for given in (engine.plan, plan))
    for name in moved.goods:
        if name in here:
            raise PlanError(f"goods of {name!r} have come, which is here already", file=plan.name)
        if name not in after:
            raise PlanError(f"goods of {name!r} have come: no such operator{existing(name, after)}", file=plan.name)
