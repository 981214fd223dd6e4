"""Segment: stations that run as one in a turn. A policy cuts a plan into segments and ranks them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

from dsms.plan.estimate import Estimate
from dsms.plan.station import Station

_NEXT_SERIAL = itertools.count()
TRIAL_ROWS = 1024  # that a step may take where the cost of a row is neither declared nor measured


class Share(NamedTuple):
    """The most that a segment may take in one turn."""

    tuples: float
    time: float  # limits every tuple but the first


class QueueCost(NamedTuple):
    """What is known of the cost of a tuple in one of a segment's queues."""

    step: float  # time of the next step on it
    path: float  # time of all its steps inside the segment
    trial: float = math.inf  # the most tuples that a step may take while its cost is unknown


class InputQueue(Protocol):
    """What a segment reads of the queues it takes from; the engine's `Queue` is one."""

    @property
    def station(self) -> Station: ...
    @property
    def index(self) -> int: ...
    @property
    def entered_head(self) -> float: ...


class Segment:
    """What a policy schedules; the ready order keeps its backlog up to date, the statistics its figures."""

    __slots__ = (
        "after",
        "costs",
        "estimate_of",
        "freed",
        "heads",
        "index",
        "key",
        "limit",
        "linear",
        "mean_cost",
        "next_cost",
        "only",
        "order",
        "pending",
        "queues",
        "ranked",
        "selectivity",
        "serial",
        "slope",
        "startup",
        "stations",
        "take",
        "weight",
    )

    def __init__(self, stations: tuple[Station, ...], weight: float = 1.0) -> None:
        self.stations = stations
        self.weight = weight
        self.startup = max(station.operator.startup for station in stations)
        # What a policy reads:
        self.pending: float = 0  # tuples in its queues
        self.selectivity = 1.0  # results per tuple taken in; outputs where no results leave here
        self.mean_cost = 0.0  # time per tuple taken in, including the work on its outputs inside the segment
        self.next_cost = 0.0  # the same for one more tuple in the same turn, after the start-up cost
        self.freed = 0.0  # bytes of memory freed per tuple taken in
        self.slope = 0.0  # its priority, where a policy computes that from charts when it cuts the plan
        self.take = math.inf  # the most tuples that its first operator takes in a run
        self.limit = Share(1, 0.0)  # what it may take in a turn when the policy sets no share
        self.index = 0  # its place in the policy's list
        self.serial = next(_NEXT_SERIAL)  # unique across policies and plans
        # What the engine keeps here, its queues among it (the engine's Queue, which this layer does not import):
        self.queues: tuple[Any, ...] = ()
        self.only: Any = None  # its queue, if it has exactly one
        self.after: dict[int, tuple[Any, ...]] = {}  # by queue: the segment's own queues downstream, the first one last
        self.costs: dict[int, QueueCost] | None = None  # by queue, once a slice has asked for them
        self.estimate_of: Callable[[Station], Estimate] | None = None  # what its figures were computed from
        self.linear = False  # whether its stations form a path, none with a start-up cost
        self.heads: list[tuple[float, int, int, Any]] = []  # heap of its queues' heads, if it has several; some stale
        self.key = 0.0  # minus its priority, as last ranked
        self.order = 0  # breaks ties: further downstream first, then plan order
        self.ranked: tuple[Any, ...] | None = None  # its valid entry in the ready order

    def __repr__(self) -> str:
        return f"Segment({'+'.join(self.names)})"

    @property
    def names(self) -> list[str]:
        return [station.name for station in self.stations]

    def start(self) -> Any:
        """Return the queue that a turn begins with: the one with the oldest head; among equals the most downstream."""
        if self.only is not None:
            return self.only
        heads = self.heads
        while heads and heads[0][0] != heads[0][3].entered_head:
            heappop(heads)  # stale: that head has been taken, or may not be taken now
        return heads[0][3] if heads else self.queues[0]

    def enter(self, queue: InputQueue) -> None:
        """Record the new head of one of several queues."""
        heappush(self.heads, (queue.entered_head, -queue.station.index, queue.index, queue))

    def measure(self, estimate_of: Callable[[Station], Estimate], shared: bool) -> None:
        """Compute the segment's figures from its stations' estimates; `shared`: readers share one copy of a tuple."""
        self.estimate_of, self.costs = estimate_of, None
        inside = {id(station) for station in self.stations}
        # A segment with several inputs has the means of their figures, weighted by their rates.
        entrances = [
            (station, producer, rate)
            for station in self.stations
            for producer, rate in zip(station.inputs, estimate_of(station).inflows, strict=True)
            if id(producer) not in inside
        ]
        total_rate = sum(rate for _, _, rate in entrances)
        reach = {id(station): 0.0 for station in self.stations}
        self.mean_cost = self.next_cost = self.selectivity = self.freed = 0.0
        for station, producer, rate in entrances:
            part = rate / total_rate if total_rate else 1 / len(entrances)
            reach[id(station)] += part
            # The last reader of a shared tuple frees it, and which one that is depends on the schedule:
            # each reader counts an equal part.
            self.freed += part * producer.size / (len(producer.consumers) if shared else 1)
        has_results = any(station.sink for station in self.stations)  # then outputs to other queries do not count
        for station in self.stations:
            estimate, tuples = estimate_of(station), reach[id(station)]
            outputs = tuples * estimate.selectivity
            self.mean_cost += tuples * estimate.cost
            self.next_cost += tuples * estimate.marginal_cost
            outside = [consumer for consumer in station.consumers if id(consumer) not in inside]
            for consumer in station.consumers:
                if id(consumer) in inside:
                    reach[id(consumer)] += outputs
            if station.sink if has_results else outside:
                self.selectivity += outputs
            if outside:
                self.freed -= outputs * station.size * (1 if shared else len(outside))

    def queue_costs(self, measured: bool) -> dict[int, QueueCost]:
        """Return what a tuple in each queue costs; `measured`: an assumed cost is none, for the clock measures it."""
        if self.costs is None:
            assert self.estimate_of is not None
            by_station: dict[int, QueueCost] = {}
            for station in sorted(self.stations, key=lambda s: s.index, reverse=True):
                estimate = self.estimate_of(station)
                unknown = measured and estimate.is_assumed
                step = 0.0 if unknown else estimate.marginal_cost
                behind = sum(by_station[c.index].path for c in station.consumers if c.index in by_station)
                path = step + estimate.selectivity * behind
                by_station[station.index] = QueueCost(step, path, TRIAL_ROWS if unknown else math.inf)
            self.costs = {queue.index: by_station[queue.station.index] for queue in self.queues}
        return self.costs
