"""Abstract tuples by the lot: those that came together stay together, as batches of real rows do."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from dsms.clock import Clock
from dsms.errors import DsmsError
from dsms.fates import name_hash
from dsms.journal import Alike
from dsms.ledger import NOTHING, Ledger, Queue
from dsms.plan import Plan, Station
from dsms.runners.base import NONE, Runner, Step
from dsms.schedule import Chunk
from dsms.segment import Segment, Share


class Lot(NamedTuple):
    """Tuples that are alike."""

    seq: int
    arrived: float  # what latency counts from
    since: float  # when they came into the queue
    rows: int


class Passing:
    """How many of the tuples that come to a station pass: by their order there, so no policy can change it."""

    def __init__(self, station: Station, plan: Plan) -> None:
        self._whole, self._chance = divmod(station.operator.selectivity, 1.0)
        self._spread = plan.settings.selectivity == "spread"
        self._draws = np.random.default_rng([plan.settings.seed, name_hash(station.name)])
        self._owed = 0.5  # from the middle of the first gap: what passes is rounded to the nearest, not down

    def of(self, rows: int) -> int:
        """Of the next so many."""
        if not self._chance:
            more = 0
        elif self._spread:
            self._owed += rows * self._chance
            more = int(self._owed + 1e-9)
            self._owed -= more
        else:
            more = int(np.count_nonzero(self._draws.random(rows) < self._chance))
        return int(self._whole) * rows + more


class LotRunner(Runner):
    """Runs abstract plans a lot a step; where `apart`, each station is in a process of its own.

    Then a turn takes all that its share allows at one station before it goes on to the next, as turns on actors do.
    """

    exact = False
    apart = False

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        for queue in ledger.queues:
            queue.goods = deque[Lot]()
        self._passing = [Passing(station, plan) for station in plan.stations]

    def expect(self, chunk: Chunk) -> None:
        raise DsmsError("lots come by themselves: none is expected")

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        return self.bring(stream, Lot(seq, instant, instant, 1))

    def bring(self, stream: int, lot: Lot) -> float:
        """A lot has come by a stream; answers its bytes."""
        buffer = self.ledger.streams[stream]
        for queue in buffer.readers:
            queue.goods.append(lot)
            queue.put(lot.rows, lot.seq)
        return lot.rows * buffer.size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        lots: deque[Lot] = queue.goods
        lot = lots.popleft()
        if lot.rows > most:
            lots.appendleft(lot._replace(rows=lot.rows - int(most)))
            lot = lot._replace(rows=int(most))
        queue.take(lot.rows, lots[0].seq if lots else NOTHING)
        station = queue.station
        made, cost = self._passing[station.index].of(lot.rows), station.operator.cost * lot.rows + startup
        if made:
            for reader in queue.outlet.readers:
                reader.goods.append(Lot(lot.seq, lot.arrived, at + cost, made))
                reader.put(made, lot.seq)
        gone = Alike(lot.arrived, made) if made and station.sink else NONE
        return queue, lot.rows, made, cost, lot.since, gone, None

    def run(self, segment: Segment, share: Share, now: float) -> list[Step]:
        if not self.apart:
            return super().run(segment, share, now)
        way, errand = _Hosts(self, segment.start()), self._errand(segment, share, now)
        while (elsewhere := errand.proceed(way)) is not None:
            way.here = elsewhere.station
        return way.steps

    def waiting_since(self) -> float:
        return min((queue.goods[0].since for queue in self.ledger.queues if queue.goods), default=NOTHING)


class _Hosts:
    """A turn's way where every station is elsewhere."""

    def __init__(self, runner: LotRunner, start: Queue) -> None:
        self._work, self.here, self.steps = runner.work, start.station, list[Step]()

    def holds(self, stop: Queue) -> bool:
        return stop.station is self.here

    def visit(self, stop: Queue, at: float, startup: float, most: float) -> tuple[float, float, float]:
        step = self._work(stop, at, startup, most)
        self.steps.append(step)
        return step[1:4]
