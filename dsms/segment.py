"""Segments: stations that run depth first as one in a turn; what a policy cuts a plan into and ranks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dsms.ledger import Queue
    from dsms.plan import Station
    from dsms.statistics import Estimate

SERIAL = itertools.count()


class Share(NamedTuple):
    """How much a segment may take in one turn: at most so many tuples and, from the second on, so much time."""

    tuples: float
    time: float


class Segment:
    """What a policy schedules; its backlog is kept by the ready order, its figures by the statistics."""

    __slots__ = (
        "after",
        "freed",
        "heads",
        "index",
        "key",
        "limit",
        "linear",
        "mean_cost",
        "next_cost",
        "oldest",
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
        self.queues: tuple[Queue, ...] = ()
        self.pending: float = 0  # tuples in its queues
        self.oldest: float = 0  # sequence number of the oldest of them
        self.after: dict[int, tuple[Queue, ...]] = {}  # by queue: those of its own that follow, the first one last
        self.only: Queue | None = None  # its queue, where it has but one
        self.linear = False  # whether its stations follow one another, none with start-up: nothing leaves it half-way
        self.key = 0.0  # minus its priority, as last ranked
        self.selectivity = 1.0  # results, or outputs where none leave here, per tuple taken in
        self.heads: list[tuple[float, int, int, Queue]] = []  # where it has several queues: their heads, some of old
        self.next_cost = 0.0  # likewise for one more in the same turn, when start-up is paid
        self.mean_cost = 0.0  # time per tuple taken in, with what becomes of it inside
        self.freed = 0.0  # bytes of memory given back per tuple taken in
        self.slope = 0.0  # its priority, where a policy works that out from charts when it cuts the plan
        self.serial = next(SERIAL)  # tells it from every other segment there was, across policies
        self.index = 0  # its place in the policy's list
        self.order = 0  # breaks ties: further downstream first, then plan order
        self.take = math.inf  # the most tuples its first operator takes in a run
        self.limit = Share(1, 0.0)  # what it may take when the policy does not say
        self.ranked: tuple[Any, ...] | None = None  # its valid entry in the ready order

    def __repr__(self) -> str:
        return f"Segment({'+'.join(self.names)})"

    @property
    def names(self) -> list[str]:
        return [station.name for station in self.stations]

    def start(self) -> Queue:
        """The queue that a turn begins with: the one whose head is the oldest; on a path, the furthest down."""
        if self.only is not None:
            return self.only
        heads = self.heads
        while heads and heads[0][0] != heads[0][3].headed:
            heappop(heads)  # that head has been taken, or may not be
        return heads[0][3] if heads else self.queues[0]

    def enter(self, queue: Queue) -> None:
        """A queue of several has another head."""
        heappush(self.heads, (queue.headed, -queue.station.index, queue.index, queue))

    def measure(self, estimate: Callable[[Station], Estimate], shared: bool) -> None:
        """Work out the figures of the whole from those of its stations; `shared`: one copy serves all readers."""
        inside = {id(station) for station in self.stations}
        # Where tuples come in by several inputs, the figures are means over these by their rates.
        entrances = [
            (station, producer, rate)
            for station in self.stations
            for producer, rate in zip(station.inputs, estimate(station).inflows, strict=True)
            if id(producer) not in inside
        ]
        whole = sum(rate for _, _, rate in entrances)
        reach = {id(station): 0.0 for station in self.stations}
        self.mean_cost = self.next_cost = self.selectivity = self.freed = 0.0
        for station, producer, rate in entrances:
            part = rate / whole if whole else 1 / len(entrances)
            reach[id(station)] += part
            # Of a shared tuple nobody knows who will be the last to read it, and so free it: each has its part.
            self.freed += part * producer.size / (len(producer.consumers) if shared else 1)
        results = any(station.sink for station in self.stations)  # then what others read of it is not its output
        for station in self.stations:
            known, tuples = estimate(station), reach[id(station)]
            outputs = tuples * known.selectivity
            self.mean_cost += tuples * known.cost
            self.next_cost += tuples * known.each
            outside = [consumer for consumer in station.consumers if id(consumer) not in inside]
            for consumer in station.consumers:
                if id(consumer) in inside:
                    reach[id(consumer)] += outputs
            if station.sink if results else outside:
                self.selectivity += outputs
            if outside:
                self.freed -= outputs * station.size * (1 if shared else len(outside))
