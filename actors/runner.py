"""The runner that carries grants to actors: the engine of `dsms` decides, stations work in processes of their own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray

from actors.fleet import Fleet
from actors.grant import Arrival, Grant, Mark
from actors.host import Stand, Way
from actors.messages import send
from actors.placement import packed
from dsms.batch import Batch
from dsms.clock import Clock
from dsms.errand import Errand
from dsms.goods import Goods, Outcome
from dsms.ledger import Ledger, Queue
from dsms.live.setup import ACTORS
from dsms.operators import Operator
from dsms.plan import Plan, Station
from dsms.runners import BatchRunner, Step
from dsms.runners.base import startups
from dsms.segment import Segment, Share

# A Ray of our own for one run: small, silent, and gone with it.
LOCAL: dict[str, Any] = {
    "address": "local",
    "include_dashboard": False,
    "log_to_driver": False,
    "logging_level": "error",
    "object_store_memory": 256 * 1024**2,
}


class ActorRunner(BatchRunner):
    """Goods are with hosts, one station in each as far as there are enough; only what was done comes back.

    What arrives goes to a host with the next grant that it gets, so its queues are filled in the order of the ledger.
    """

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock, fleet: Fleet | None = None) -> None:
        self._own = fleet is None
        self._started_ray = fleet is None and not ray.is_initialized()
        if self._started_ray:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(**LOCAL)
        self.fleet = fleet or Fleet.of(min(len(plan.stations), ACTORS))
        self.occupied = 0.0
        self._arrivals: dict[int, list[Arrival]] = {}
        self._made: Counter[str] = Counter()  # by station: batches it has put out
        self.results: Counter[str] = Counter()  # by query: batches of results
        super().__init__(plan, ledger, clock)
        self._settle(self._hosts)

    def deliver(self, queue: Queue, batch: Any, since: float) -> None:
        """Keep what has come by a stream for the host that reads it."""
        place = self.places[queue.station.name]
        waiting, read = self._arrivals.setdefault(place, []), (queue.station.name, queue.port)
        if waiting and waiting[-1].batch is batch:
            waiting[-1] = waiting[-1]._replace(queues=(*waiting[-1].queues, read))
        else:
            waiting.append(Arrival(batch, (read,), since))

    def run(self, segment: Segment, share: Share, now: float) -> list[Step]:
        marks = self._marks(segment.queues)
        after = {index: tuple(marks[q.index] for q in following) for index, following in segment.after.items()}
        starting = {station.name: cost for station, cost in startups(segment).items()}
        return self._carried(marks, segment.start(), after, share, now, segment.next_cost, starting)

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        starting = {queue.station.name: startup} if startup else {}
        return self._carried(self._marks((queue,)), queue, {}, Share(most, 0.0), at, 0.0, starting)[0]

    def operator(self, station: Station) -> Operator:
        return station.operator

    def waiting_since(self) -> float:
        there = self.fleet.each(lambda _, host: send(host.waiting_since))
        here = (arrival.since for arrivals in self._arrivals.values() for arrival in arrivals)
        return float(min([*there, *here]))

    def close(self) -> None:
        """End the actors, and Ray too, if they were started for this run."""
        if self._own:
            self.fleet.end()
        if self._started_ray:
            ray.shutdown()
            self._started_ray = False

    def _carried(
        self,
        marks: Mapping[int, Mark],
        start: Queue,
        after: Mapping[int, tuple[Mark, ...]],
        share: Share,
        now: float,
        next_cost: float,
        starting: Mapping[str, float],
    ) -> list[Step]:
        errand = Errand(
            marks[start.index],
            after,
            share,
            now,
            next_cost,
            starting,
            exact=self.exact,
            declared=not self._measured,
            pieces=self._fractional,
        )
        place = marks[start.index].place
        results = {name: self.results[name] for name in {self.ledger.queues[i].station.query.name for i in marks}}
        grant = Grant(errand, self._arrivals.pop(place, []), results, bring=self.sink is not None)
        turn = self.fleet.carry(place, grant)
        self.occupied += turn.seconds
        return [self._told(*did) for did in turn.did]

    def _told(self, index: int, done: Outcome, made: Batch | None) -> Step:
        """A step that was taken elsewhere."""
        queue = self.ledger.queues[index]
        self._made[queue.station.name] += bool(done.made)
        self.results[queue.station.query.name] += self.sink is None and len(done.gone) > 0
        return self.entered(queue, done, made)

    def _marks(self, queues: Iterable[Queue]) -> dict[int, Mark]:
        """What a grant is told of queues, and of all that those wait for that merge."""
        known = {queue.index: queue for queue in queues}
        merges = [queue.merge for queue in known.values() if queue.merge is not None]
        for merge in merges:
            known.update((queue.index, queue) for part in (merge.queues, *merge.above) for queue in part)
        marks = {index: self._mark(queue) for index, queue in known.items()}
        for index, queue in known.items():
            marks[index].feeds = tuple(marks[r.index] for r in queue.outlet.readers if r.index in marks)
        for merge in merges:
            inputs = [marks[queue.index] for queue in merge.queues]
            above = [[marks[queue.index] for queue in part] for part in merge.above]
            like = merge.like(inputs, above)
            for mark in inputs:
                mark.merge = like
        return marks

    def _mark(self, queue: Queue) -> Mark:
        station, producer = queue.station, queue.station.inputs[queue.port]
        due = self._made[producer.name] if isinstance(producer, Station) else 0
        return Mark(queue.index, station.name, queue.port, self.places[station.name], queue.oldest, due)

    def _settle(self, hosts: Sequence[Goods]) -> None:
        """Bring goods to hosts, and let these know where what their stations put out goes."""
        goods = {one.name: one for one in hosts}
        stations = {station.name: station for station in self.plan.stations}
        groups = packed(self.plan.stations, len(self.fleet.hosts))
        groups += [[] for _ in range(len(self.fleet.hosts) - len(groups))]
        self.places = {name: place for place, names in enumerate(groups) for name in names}
        stands = [[self._stand(stations[name], goods[name]) for name in names] for names in groups]
        self.fleet.open(stands, str(self.plan.folder.absolute()), self._measured)
        self._route()

    def _stand(self, station: Station, goods: Goods) -> Stand:
        made = [self._made[p.name] if isinstance(p, Station) else 0 for p in station.inputs]
        return Stand(goods, station.query.name, self._made[station.name], made)

    def _route(self) -> None:
        ways: list[dict[str, tuple[Way, ...]]] = [{} for _ in self.fleet.hosts]
        queries: list[dict[str, str]] = [{} for _ in self.fleet.hosts]
        for station in self.plan.stations:
            place, readers = self.places[station.name], self.ledger.outlets[station.index].readers
            ways[place][station.name] = tuple(
                Way(self.places[reader.station.name], reader.station.name, reader.port) for reader in readers
            )
            queries[place][station.name] = station.query.name
        self.fleet.each(lambda place, host: send(host.route, ways[place], queries[place]))
