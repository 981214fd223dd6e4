"""Rows that are given up: of queries that may not wait for all of theirs, and all of queries that cannot go on."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from dsms.batch import Column
from dsms.ledger import Ledger, Queue
from dsms.plan import Plan, Station

if TYPE_CHECKING:
    from dsms.engine import Engine

SHED = "shed"  # as a kind of rows that were left aside


class Shedder:
    """Looks, between two turns, whether more waits for a query than it may have."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self._plan, self._ledger = plan, ledger
        self._limited = [
            (queue, query.shed.way, query.shed.ceiling)
            for query in plan.queries
            if query.shed is not None
            for queue in inlets(plan, ledger, {query.name})
        ]
        self._random = np.random.default_rng([plan.settings.seed, len(plan.queries)])
        self._barred: list[Queue] = []
        self.quarantined: frozenset[str] = frozenset()
        self.active = bool(self._limited)  # whether there is anything to look at

    def bar(self, queries: Collection[str]) -> None:
        """Let these queries, and no others, have nothing to do: all that comes for them alone is given up."""
        self.quarantined = frozenset(queries) & {query.name for query in self._plan.queries}
        own = own_stations(self._plan, self.quarantined)
        self._barred = [queue for station in own for queue in self._ledger.inputs[station.index]]
        self.active = bool(self._limited or self._barred)

    def look(self, engine: Engine) -> None:
        """Give up what is too much."""
        for queue, way, ceiling in self._limited:
            if queue.count > ceiling:
                engine.give_up(queue, self._places(way, int(queue.count), ceiling))
        for queue in self._barred:
            if queue.count:
                engine.give_up(queue, None)

    def _places(self, way: str, count: int, ceiling: int) -> Column:
        """Which of so many are given up: as few as bring them to the ceiling."""
        if way == "oldest":
            return np.arange(count - ceiling)
        return np.sort(self._random.choice(count, count - ceiling, replace=False))


def own_stations(plan: Plan, queries: Collection[str]) -> list[Station]:
    """The stations that nobody but these queries needs."""
    own: dict[int, Station] = {}
    for station in reversed(plan.stations):  # each after all that read it
        if station.query.name in queries and all(id(consumer) in own for consumer in station.consumers):
            own[id(station)] = station
    return list(own.values())[::-1]


def inlets(plan: Plan, ledger: Ledger, queries: Collection[str]) -> list[Queue]:
    """The queues by which rows come to what only these queries need."""
    own = own_stations(plan, queries)
    mine = set(map(id, own))
    return [queue for s in own for queue in ledger.inputs[s.index] if id(s.inputs[queue.port]) not in mine]


def dependents(plan: Plan, stations: Collection[str]) -> list[str]:
    """The queries that need one of these stations, in plan order."""
    behind: set[int] = set()
    for station in plan.stations:  # each after all that it reads
        if station.name in stations or any(id(producer) in behind for producer in station.inputs):
            behind.add(id(station))
    return list(dict.fromkeys(station.query.name for station in plan.stations if id(station) in behind))


def shed_by_query(engine: Engine) -> dict[str, int]:
    """How many rows each query has given up."""
    found = {query.name: 0 for query in engine.plan.queries}
    for station in engine.plan.stations:
        found[station.query.name] += engine.runner.left_aside[station.name, SHED]
    return found
