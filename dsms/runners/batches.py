"""Real rows, and abstract tuples as rows: every station's goods in batches of columns."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from dsms.batch import Batch, Column
from dsms.clock import Clock
from dsms.fates import identities
from dsms.goods import Goods, Outcome
from dsms.ledger import NOTHING, Ledger, Queue
from dsms.operators import Operator
from dsms.operators.footprint import state_bytes
from dsms.parcel import Parcel
from dsms.plan import Plan, Station, surviving
from dsms.runners.base import NONE, Runner, Step
from dsms.schedule import Chunk
from dsms.segment import Segment, Share

# Memory that is let go would return to the system, and each batch pay for fresh pages with up to a fourth of its time;
# from one large block come and gone malloc learns to keep what it has. No page of it is touched.
np.empty(24 * 2**20, dtype=np.uint8)


class BatchRunner(Runner):
    """Runs any plan in this process, a batch a step; in virtual time, a row a step, so that each has its instant."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        self.exact, self._measured = clock.exact, clock.meter() is not None
        self._grain = 1 if self.exact else math.inf
        self._expected: dict[int, Batch] = {}  # by number: the arrivals to come
        self._working: Queue | None = None  # the last that was worked on
        self._hosts: list[Any] = [self.host(self._goods(station)) for station in plan.stations]

    def host(self, goods: Goods) -> Any:
        """Where a station's goods live: here."""
        return goods

    def deliver(self, queue: Queue, batch: Any, since: float) -> None:
        """Put a batch into a queue."""
        self._hosts[queue.station.index].put(queue.port, batch, since)

    def operator(self, station: Station) -> Operator:
        goods: Goods = self._hosts[station.index]
        return goods.operator

    def expect(self, chunk: Chunk) -> None:
        for place, mine in chunk.by_stream():
            stream = self.plan.streams[place]
            who = identities(stream.name, chunk.numbers[mine])
            carried = dict(chunk.carries.get(place, {}))
            size = 1.0 if self.plan.settings.fractional else carried.pop("size", stream.size)
            cost = carried.pop("cost", 1.0)
            together = Batch.of(carried, rows=len(mine), identity=who, size=size, cost=cost)
            for row, position in enumerate(mine.tolist()):
                self._expected[chunk.first + position] = together.pick(slice(row, row + 1))

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        row = self._expected.pop(number)
        size = self.plan.streams[stream].size if self.plan.settings.fractional else row.memory()
        return self._spread(stream, replace(row, seq=seq, arrived=instant), size, instant)

    def push(self, stream: int, batch: Batch | Parcel, instant: float) -> float:
        return self._spread(stream, batch, batch.memory(), instant)

    def _spread(self, stream: int, batch: Batch | Parcel, size: float, instant: float) -> float:
        amount = len(batch) or 1  # time alone counts as one
        for queue in self.ledger.streams[stream].readers:
            self.deliver(queue, batch, instant)
            queue.put(float(amount) if self.plan.settings.fractional else amount, batch.first("seq"))
        return size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        self._working = queue
        done, made = self._hosts[queue.station.index].work(queue.port, startup, min(most, self._grain))
        if done.made:
            for reader in self.ledger.outlets[queue.station.index].readers:
                self.deliver(reader, made, at + done.cost)
        return self.entered(queue, done, made)

    def entered(self, queue: Queue, done: Outcome, made: Batch | None) -> Step:
        """Enter in the ledger what a station has done; if what it made is here, whoever takes results gets it."""
        queue.take(done.taken, done.head)
        if done.made:
            for reader in self.ledger.outlets[queue.station.index].readers:
                reader.put(done.made, done.seq)
        gone = cast("Sequence[float]", done.gone) if len(done.gone) else NONE
        if self.sink is not None and gone is not NONE and made is not None:
            self.sink(queue.station.query.name, made)
        for aside in done.asides:
            self.put_aside(queue.station.name, aside)
        if done.barren:
            self.barren[queue.station.name] = done.barren
        elif self.barren:
            self.barren.pop(queue.station.name, None)
        if done.deadline is not None and queue.station.index in self.clocked:
            self.deadlines[queue.station.index] = done.deadline
        elif self.deadlines:
            self.deadlines.pop(queue.station.index, None)
        return queue, done.taken, done.made, done.cost, done.since, gone, (done.taken_bytes, done.made_bytes)

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        count, size, head = self._hosts[queue.station.index].shed(queue.port, places)
        queue.take(count, head)
        return count, size

    def renew(self, stations: Iterable[Station], anew: bool) -> None:
        for station in stations:
            self._renew(station, station.operator.fresh(self.plan.settings) if anew else None)
            self.barren.pop(station.name, None)

    def _renew(self, station: Station, operator: Operator | None) -> None:
        goods: Goods = self._hosts[station.index]
        goods.renew(operator)

    def doing(self) -> tuple[str, str, str] | None:
        return None if self._working is None else (self._working.station.name, "here", "")

    def run(self, segment: Segment, share: Share, now: float) -> list[Step]:
        queue = segment.only
        if queue is None or segment.startup or queue.merge is not None or not (self.exact or self._measured):
            return super().run(segment, share, now)
        # The same for a segment of one station, which most are.
        steps, at, left = list[Step](), now, share.tuples
        limit = now + share.time * (1 + 1e-9)
        while True:
            step = self.work(queue, at, 0.0, left)
            steps.append(step)
            at += step[3]
            left -= 1 if self._fractional else step[1]
            if queue.oldest == NOTHING or left <= 0 or at + segment.next_cost > limit:
                return steps

    def waiting_since(self) -> float:
        return float(min((host.waiting_since() for host in self._hosts), default=NOTHING))

    def _goods(self, station: Station) -> Goods:
        return Goods(
            station.name,
            station.operator.fresh(self.plan.settings),
            len(station.inputs),
            tuple(producer.size for producer in station.inputs),
            station.size,
            station.sink,
            any(consumer.timed for consumer in station.consumers),
            self.plan.settings.fractional,
            self.plan.settings.on_error == "dead-letter",
            self.clock.meter,
        )

    def succeed(self, plan: Plan, ledger: Ledger, goods: Mapping[str, Goods]) -> BatchRunner:
        after, mine = copy.copy(self), surviving(self.plan, plan)
        after.plan, after.ledger = plan, ledger
        after.left_aside, after.deadlines = Counter(self.left_aside), {}
        after.reasons, after.barren = dict(self.reasons), dict(self.barren)
        # Not those of queries that have gone: one that comes under such a name begins anew.
        after.results = Counter({query.name: self.results[query.name] for query in plan.queries})
        after._hosts = [
            self._hosts[mine[station.name].index] if station.name in mine else after._hosted(station, goods)
            for station in plan.stations
        ]
        for station in plan.stations:
            if station.name in mine and mine[station.name].index in self.deadlines:
                after.deadlines[station.index] = self.deadlines[mine[station.name].index]
        return after

    def settle(self, before: Runner) -> None:
        stayed = surviving(before.plan, self.plan)
        for station in self.plan.stations:
            if station.name in stayed:
                self.surround(station, station.sink, any(consumer.timed for consumer in station.consumers))
        before.let_go([station.name for station in before.plan.stations if station.name not in stayed])

    def surround(self, station: Station, sink: bool, timed: bool) -> None:
        """Tell a station whether results leave it, and whether anybody behind it wants to know the time."""
        goods: Goods = self._hosts[station.index]
        goods.sink, goods.timed = sink, timed

    def contents(self, queue: Queue) -> list[tuple[float, float]]:
        goods: Goods = self._hosts[queue.station.index]
        return goods.contents(queue.port)

    def state_bytes(self) -> dict[str, float]:
        return {goods.name: state_bytes(goods.operator) for goods in self._hosts}

    def extracted(self, stations: Iterable[str]) -> dict[str, Goods]:
        wanted = set(stations)
        return {s.name: self._hosts[s.index].handed_on() for s in self.plan.stations if s.name in wanted}

    def _hosted(self, station: Station, goods: Mapping[str, Goods]) -> Any:
        moved = goods.get(station.name)
        return self.host(self._goods(station) if moved is None else moved.handed_on(self.clock.meter))
