"""Shedder: drops rows of queries over their queue limit, and all rows of quarantined queries."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from dsms.data.batch import Column
from dsms.engine.ledger import Ledger, Queue
from dsms.plan.graph import Plan, Station

if TYPE_CHECKING:
    from dsms.engine.engine import Engine

SHED = "shed"  # the kind under which shed rows are counted


class Shedder:
    """Checks between turns whether a query's queues exceed its limit, and drops the excess."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self._plan, self._ledger = plan, ledger
        self._limited = [
            (queue, query.shed.way, query.shed.ceiling)
            for query in plan.queries
            if query.shed is not None
            for queue in exclusive_inputs(plan, ledger, {query.name})
        ]
        self._random = np.random.default_rng([plan.settings.seed, len(plan.queries)])
        self._barred: list[Queue] = []
        self.quarantined: frozenset[str] = frozenset()
        self.active = bool(self._limited)  # whether any queue has a limit or is quarantined

    def quarantine(self, queries: Collection[str]) -> None:
        """Quarantine exactly these queries: rows that only they read are dropped."""
        self.quarantined = frozenset(queries) & {query.name for query in self._plan.queries}
        own = exclusive_stations(self._plan, self.quarantined)
        self._barred = [queue for station in own for queue in self._ledger.inputs[station.index]]
        self.active = bool(self._limited or self._barred)

    def drop_excess(self, engine: Engine) -> None:
        """Drop the rows above each limit, and all rows of quarantined queries."""
        for queue, way, ceiling in self._limited:
            if queue.count > ceiling:
                self._shed(engine, queue, self._places(way, int(queue.count), ceiling))
        for queue in self._barred:
            if queue.count:
                self._shed(engine, queue, None)

    def _shed(self, engine: Engine, queue: Queue, places: Column | None) -> None:
        """Drop the tuples at these places of a queue, or all of them, and account for the freed memory."""
        ledger, now = self._ledger, engine.clock.now()
        engine.elapse(now)
        count, size = engine.runner.shed(queue, places)
        freed, freed_bytes = queue.buffer.release(queue, count, size)
        ledger.held -= freed
        ledger.held_bytes -= freed_bytes if ledger.size is None else 0.0
        engine.runner.rejected_rows[queue.station.name, SHED] += int(count)
        for tell in engine.observers.on_shed:
            tell(now, queue, count, size)

    def _places(self, way: str, count: int, ceiling: int) -> Column:
        """Return the places of the rows to drop: as few as bring the queue down to the ceiling."""
        if way == "oldest":
            return np.arange(count - ceiling)
        return np.sort(self._random.choice(count, count - ceiling, replace=False))


def exclusive_stations(plan: Plan, queries: Collection[str]) -> list[Station]:
    """Return the stations that only these queries need."""
    own: dict[int, Station] = {}
    for station in reversed(plan.stations):  # consumers first
        if station.query.name in queries and all(id(consumer) in own for consumer in station.consumers):
            own[id(station)] = station
    return list(own.values())[::-1]


def exclusive_inputs(plan: Plan, ledger: Ledger, queries: Collection[str]) -> list[Queue]:
    """Return the queues by which rows enter the stations that only these queries need."""
    own = exclusive_stations(plan, queries)
    mine = set(map(id, own))
    return [queue for s in own for queue in ledger.inputs[s.index] if id(s.inputs[queue.port]) not in mine]


def dependent_queries(plan: Plan, stations: Collection[str]) -> list[str]:
    """Return the queries that need one of these stations, in plan order."""
    behind: set[int] = set()
    for station in plan.stations:  # producers first
        if station.name in stations or any(id(producer) in behind for producer in station.inputs):
            behind.add(id(station))
    return list(dict.fromkeys(station.query.name for station in plan.stations if id(station) in behind))


def count_shed_by_query(engine: Engine) -> dict[str, int]:
    """Return how many rows each query has shed."""
    found = {query.name: 0 for query in engine.plan.queries}
    for station in engine.plan.stations:
        found[station.query.name] += engine.runner.rejected_rows[station.name, SHED]
    return found
