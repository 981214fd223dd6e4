"""The runner that carries grants to actors: the engine of `dsms` decides, stations work in processes of their own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray

from actors.fleet import Fleet
from actors.grant import Arrival, Grant, Mark
from actors.host import Contents, Stand, Way
from actors.messages import answered, pickled, send, unpickled
from actors.placement import packed
from dsms.batch import Batch, Column
from dsms.clock import Clock
from dsms.errand import Errand
from dsms.goods import Goods, Outcome
from dsms.ledger import Ledger, Queue
from dsms.live.setup import ACTORS
from dsms.operators import Operator
from dsms.operators.function import FOLDERS
from dsms.plan import Plan, Station
from dsms.runners import BatchRunner, Runner, Step
from dsms.runners.base import startups
from dsms.segment import Segment, Share

# A Ray of our own for one run: small, silent, and gone with it.
LOCAL: dict[str, Any] = {
    "address": "local",
    "include_dashboard": False,
    "log_to_driver": False,
    "logging_level": "error",
    "object_store_memory": 256 * 1024**2,
    # Bytes up to which rows travel inside a call: the way through the object store takes a millisecond more.
    "_system_config": {"max_direct_call_object_size": 1024**2},
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
        self._contents: dict[int, Contents] = {}  # by host, as long as nothing changes
        self.places: dict[str, int] = {}  # by station: its host
        super().__init__(plan, ledger, clock)
        self._open(self._spread_over(plan.stations), {goods.name: goods for goods in self._hosts})
        self._route()

    def deliver(self, queue: Queue, batch: Any, since: float) -> None:
        """Keep what has come by a stream for the host that reads it."""
        place = self.places[queue.station.name]
        self._contents.clear()
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

    def succeed(self, plan: Plan, ledger: Ledger, goods: Mapping[str, Goods]) -> ActorRunner:
        after = super().succeed(plan, ledger, goods)
        assert isinstance(after, ActorRunner)
        after._made = Counter(self._made)
        names = {station.name for station in plan.stations}
        after.places = {name: place for name, place in self.places.items() if name in names}
        new = [station for station in plan.stations if station.name not in after.places]
        hosts = {station.name: after._hosts[station.index] for station in new}
        after._open(after._spread_over(new), hosts)
        return after

    def settle(self, before: Runner) -> None:
        before.let_go([station.name for station in before.plan.stations if station.name not in self.places])
        self._route()

    def contents(self, queue: Queue) -> list[tuple[float, float]]:
        place = self.places[queue.station.name]
        if place not in self._contents:
            host = self.fleet.hosts[place]
            self._contents[place] = answered(send(host.contents, self._arrivals.pop(place, []), self._dues()))
        return self._contents[place][queue.station.name, queue.port]

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        name, place = queue.station.name, self.places[queue.station.name]
        asked = (name, queue.port, places, self._arrivals.pop(place, []), self._dues())
        self._contents.clear()
        count, size, head = answered(send(self.fleet.hosts[place].shed, *asked))
        queue.take(count, head)
        return count, size

    def _renew(self, station: Station, operator: Operator | None) -> None:
        answered(send(self.fleet.hosts[self.places[station.name]].renew, station.name, pickled(operator)))

    def doing(self) -> tuple[str, str, str] | None:
        return self.fleet.doing()

    def end(self, station: str) -> bool:
        return self.fleet.kill(self.places[station])

    def state_bytes(self) -> dict[str, float]:
        told = self.fleet.each(lambda _, host: send(host.state_bytes))
        return {name: size for one in told for name, size in one.items()}

    def extracted(self, stations: Iterable[str]) -> dict[str, Goods]:
        found: dict[str, Goods] = {}
        for place, names in self._by_place(stations):
            host, arrivals = self.fleet.hosts[place], self._arrivals.pop(place, [])
            found.update(unpickled(answered(send(host.extracted, names, arrivals, self._dues()))))
        return found

    def keep(self) -> None:
        """Have all hosts keep their goods as they are now; between two turns."""
        dues = self._dues()
        told = self.fleet.each(lambda place, host: send(host.keep, self._arrivals.pop(place, []), dues))
        self._contents = dict(enumerate(told))

    def let_go(self, stations: Iterable[str]) -> None:
        for place, names in self._by_place(stations):
            answered(send(self.fleet.hosts[place].shut, names, self._arrivals.pop(place, []), self._dues()))

    def close(self) -> None:
        """End the actors, and Ray too, if they were started for this run."""
        if self._own:
            self.fleet.end()
        else:
            self.fleet.close()
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
        self._contents.clear()
        turn = self.fleet.carry(place, grant)
        self.occupied = (self.occupied or 0.0) + turn.seconds
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

    def _open(self, groups: Sequence[Sequence[str]], goods: Mapping[str, Goods]) -> None:
        """Bring stations to hosts, by their places."""
        self._contents.clear()
        stations = {station.name: station for station in self.plan.stations}
        self.places.update((name, place) for place, names in enumerate(groups) for name in names)
        stands = [[self._stand(stations[name], goods[name]) for name in names] for names in groups]
        self.fleet.open(stands, list(FOLDERS), self._measured)

    def _spread_over(self, stations: Sequence[Station]) -> list[list[str]]:
        """Stations over hosts: those that come later go to where the fewest are."""
        if not self.places:
            groups = packed(stations, len(self.fleet.hosts))
            return groups + [[] for _ in range(len(self.fleet.hosts) - len(groups))]
        count = Counter(self.places.values())
        found: list[list[str]] = [[] for _ in self.fleet.hosts]
        for station in stations:
            place = min(range(len(found)), key=lambda place: count[place])
            found[place].append(station.name)
            count[place] += 1
        return found

    def _stand(self, station: Station, goods: Goods) -> Stand:
        goods.measure(None)  # that is done where it is
        made = [self._made[p.name] if isinstance(p, Station) else 0 for p in station.inputs]
        return Stand(goods, station.query.name, self._made[station.name], made)

    def _route(self) -> None:
        ways: list[dict[str, tuple[Way, ...]]] = [{} for _ in self.fleet.hosts]
        queries: list[dict[str, str]] = [{} for _ in self.fleet.hosts]
        around: list[dict[str, tuple[bool, bool]]] = [{} for _ in self.fleet.hosts]
        for station in self.plan.stations:
            place, readers = self.places[station.name], self.ledger.outlets[station.index].readers
            ways[place][station.name] = tuple(
                Way(self.places[reader.station.name], reader.station.name, reader.port) for reader in readers
            )
            queries[place][station.name] = station.query.name
            around[place][station.name] = station.sink, any(consumer.timed for consumer in station.consumers)
        self.fleet.each(lambda place, host: send(host.route, ways[place], queries[place], around[place]))

    def _by_place(self, stations: Iterable[str]) -> list[tuple[int, list[str]]]:
        by_place: dict[int, list[str]] = {}
        for name in stations:
            by_place.setdefault(self.places[name], []).append(name)
        return list(by_place.items())

    def _dues(self) -> dict[tuple[str, int], int]:
        """By queue: how many batches its producer has put out by now."""
        return {(queue.station.name, queue.port): self._mark(queue).due for queue in self.ledger.queues}
