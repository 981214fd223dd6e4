"""Every schedule that a small plan could have: what a policy that claims to be the best is held against."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from support.strategies import policy

from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.plan.graph import Plan, Stream
from dsms.plan.segment import Segment

State = tuple[int, ...]  # by station: how many pieces it has worked on


@dataclass
class WorkItem:
    """The batches of one station and their results, under every order of turns."""

    amount: float
    size: float  # bytes
    cost: float
    results: float  # that leave
    items: int  # pieces for each reader


class WorkItemRecorder(Observer):
    """Of each station all that it works on, in order: the order of arrival, so the same under every policy."""

    trusted = True

    def attach(self, engine: Engine) -> None:
        self.fractional = engine.plan.settings.fractional
        self.found: list[list[WorkItem]] = [[] for _ in engine.plan.stations]

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        for queue, taken, made, cost, *_ in steps:
            items = int(made > 0) if self.fractional else int(made)
            results = made if queue.station.sink else 0
            self.found[queue.station.index].append(WorkItem(taken, taken * queue.buffer.size, cost, results, items))


class ScheduleSpace:
    """A plan of paths and forks as work to be done: which pieces can be worked on, and what is held meanwhile."""

    def __init__(self, plan: Plan) -> None:
        watch = WorkItemRecorder()
        Engine(plan, policy("fifo"), observers=[watch]).run()
        self.plan, self.pieces = plan, watch.found
        self.start: State = (0,) * len(plan.stations)
        self._arrivals = {id(s): s.arrivals(0).between(0.0, 1e9).tolist() if s.arrivals else [] for s in plan.streams}
        self._made = [[0, *accumulate(piece.items for piece in pieces)] for pieces in self.pieces]

    def come(self, station: int, state: State, now: float) -> int:
        """How many pieces have come to a station so far."""
        (producer,) = self.plan.stations[station].inputs
        if isinstance(producer, Stream):
            return bisect_right(self._arrivals[id(producer)], now)
        return self._made[producer.index][state[producer.index]]

    def ways(self, state: State, now: float) -> Iterator[tuple[WorkItem, State]]:
        """What can be done next, and the state thereafter."""
        for station, done in enumerate(state):
            if done < self.come(station, state, now):
                yield self.pieces[station][done], (*state[:station], done + 1, *state[station + 1 :])

    def held(
        self, state: State, now: float, measure: Callable[[WorkItem], float] = lambda piece: piece.amount
    ) -> float:
        """What is in all queues, where every reader has a copy of its own."""
        return sum(
            measure(piece)
            for station, done in enumerate(state)
            for piece in self.pieces[station][done : self.come(station, state, now)]
        )

    def cheapest(self, price: Callable[[State, WorkItem, float], float]) -> float:
        """For a batch at time 0: the least that any order of work costs, each step at a price by when it is done."""
        ahead = {self.start: (0.0, 0.0)}  # the time it is, which only depends on what is done; the least price of that
        while True:
            further: dict[State, tuple[float, float]] = {}
            for state, (time, paid) in ahead.items():
                for piece, after in self.ways(state, 0.0):
                    total = paid + price(state, piece, time + piece.cost)
                    if after not in further or total < further[after][1]:
                        further[after] = (time + piece.cost, total)
            if not further:
                return min(paid for _, paid in ahead.values())
            ahead = further


def least_latency(plan: Plan) -> float:
    """The least sum of latencies of a batch's results over all schedules that keep the order of arrival."""
    return ScheduleSpace(plan).cheapest(lambda _, piece, done: piece.results * done)


def least_bytes(plan: Plan) -> float:
    """The least area under the bytes held for a batch, over all such schedules."""
    space = ScheduleSpace(plan)
    return space.cheapest(lambda state, piece, _: piece.cost * space.held(state, 0.0, lambda p: p.size))


def least_held(plan: Plan, instants: Sequence[int]) -> list[float]:
    """At each whole instant the least that any schedule could hold then; each step takes a unit, idling is allowed."""
    space = ScheduleSpace(plan)
    assert all(piece.cost == 1 for pieces in space.pieces for piece in pieces)
    reached, least = {space.start}, []
    for now in instants:
        least.append(min(space.held(state, now) for state in reached))
        reached |= {after for state in reached for _, after in space.ways(state, now)}
    return least
