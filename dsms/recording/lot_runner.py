"""Runs abstract operators on groups of tuples: tuples that arrive together stay together, like a batch of rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dsms.clock import Clock
from dsms.data.journal import RepeatedValue
from dsms.data.outcomes import hash_name
from dsms.engine.arrival_schedule import ArrivalChunk
from dsms.engine.ledger import NO_HEAD, Ledger, Queue
from dsms.engine.runners.runner import NO_RESULTS, Runner, Step, StepFields
from dsms.errors import DsmsError
from dsms.plan.graph import Plan, Station
from dsms.plan.segment import Segment, Share


class TupleGroup(NamedTuple):
    """Tuples that arrived together."""

    seq: int
    arrived: float  # start of their latency
    since: float  # when they entered the queue
    rows: int


class SelectivityModel:
    """Decides how many tuples pass a station, by their order there: no policy can change it."""

    def __init__(self, station: Station, plan: Plan) -> None:
        self._whole, self._chance = divmod(station.operator.selectivity, 1.0)
        self._spread = plan.settings.selectivity == "spread"
        self._draws = np.random.default_rng([plan.settings.seed, hash_name(station.name)])
        self._owed = 0.5  # starts in the middle: the number that passes is rounded to the nearest, not down

    def of(self, rows: int) -> int:
        """How many of the next `rows` tuples pass."""
        if not self._chance:
            more = 0
        elif self._spread:
            self._owed += rows * self._chance
            more = int(self._owed + 1e-9)
            self._owed -= more
        else:
            more = int(np.count_nonzero(self._draws.random(rows) < self._chance))
        return int(self._whole) * rows + more


class GroupRunner(Runner):
    """Runs abstract plans, one group of tuples a step; with `places`, stations are at these hosts.

    A turn then processes all that its share allows at one host before it moves to the next, like turns on actors.
    """

    exact = False

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        for queue in ledger.queues:
            queue.payload = deque[TupleGroup]()
        self._passing = [SelectivityModel(station, plan) for station in plan.stations]

    def expect(self, chunk: ArrivalChunk) -> None:
        raise DsmsError("a replay reads groups from the recording: it expects no arrivals")

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        return self.bring(stream, TupleGroup(seq, instant, instant, 1))

    def bring(self, stream: int, lot: TupleGroup) -> float:
        """Add a group of tuples to the queues of a stream's readers; return its bytes."""
        buffer = self.ledger.streams[stream]
        for queue in buffer.readers:
            queue.payload.append(lot)
            queue.put(lot.rows, lot.seq)
        return lot.rows * buffer.size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        lots: deque[TupleGroup] = queue.payload
        lot = lots.popleft()
        if lot.rows > most:
            lots.appendleft(lot._replace(rows=lot.rows - int(most)))
            lot = lot._replace(rows=int(most))
        queue.take(lot.rows, lots[0].seq if lots else NO_HEAD)
        station = queue.station
        made, cost = self._passing[station.index].of(lot.rows), station.operator.cost * lot.rows + startup
        if made:
            for reader in queue.outlet.readers:
                reader.payload.append(TupleGroup(lot.seq, lot.arrived, at + cost, made))
                reader.put(made, lot.seq)
        result_arrivals = RepeatedValue(lot.arrived, made) if made and station.sink else NO_RESULTS
        return Step(queue, lot.rows, made, cost, lot.since, result_arrivals, None)

    def run(self, segment: Segment, share: Share, now: float) -> Sequence[StepFields]:
        if not self.places:
            return super().run(segment, share, now)
        hosts, cursor = _SimulatedHosts(self, segment.start()), self._make_cursor(segment, share, now)
        while (elsewhere := cursor.run_until_remote(hosts)) is not None:
            hosts.move_to(elsewhere)
        return hosts.steps

    def waiting_since(self) -> float:
        return min((queue.payload[0].since for queue in self.ledger.queues if queue.payload), default=NO_HEAD)


class _SimulatedHosts:
    """Runs a turn as if stations were on the runner's hosts."""

    def __init__(self, runner: GroupRunner, start: Queue) -> None:
        self._work, self._places, self.steps = runner.work, runner.places, list[Step]()
        self.move_to(start)

    def move_to(self, stop: Queue) -> None:
        """Continue at the host of this queue."""
        self._here = self._places[stop.station.name]

    def is_local(self, stop: Queue) -> bool:
        return self._places[stop.station.name] == self._here

    def run_step(self, stop: Queue, at: float, startup: float, most: float) -> tuple[float, float, float]:
        step = self._work(stop, at, startup, most)
        self.steps.append(step)
        return step.taken, step.made, at + step.cost
