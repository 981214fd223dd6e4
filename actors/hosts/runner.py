"""The engine's runner on Ray: the engine decides in this process, host actors run the turns it grants."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import ray

from actors.cluster.cluster import LOCAL_RAY_OPTIONS
from actors.hosts.grant import Arrival, Grant
from actors.hosts.host import HostedStation, OutputRoute, QueueContents
from actors.hosts.host_pool import HostPool
from actors.hosts.segment_layout import describe_segment
from actors.rpc.messages import deserialize, get_result, send, serialize
from actors.rpc.ray_workarounds import start_ray
from dsms.clock import Clock, monotonic_s
from dsms.config.live import DEFAULT_ACTORS
from dsms.data.batch import Batch, Column
from dsms.data.batch_ref import BatchRef
from dsms.engine.ledger import Ledger, Queue
from dsms.engine.runners import BatchRunner, RowRunner, Step
from dsms.engine.runners.runner import ContinuedTurn, startup_costs
from dsms.engine.runners.station_state import StationState, StepOutcome
from dsms.engine.runners.turn_cursor import TurnCursor
from dsms.operators import Operator
from dsms.operators.batch_function import FUNCTION_FOLDERS
from dsms.plan.graph import Plan, Station
from dsms.plan.hosts import group_stations
from dsms.plan.segment import QueueCost, Segment, Share


class KnownSegment(NamedTuple):
    """A segment that hosts have learned, with what each grant adds to it."""

    number: int
    segment: Segment | None  # None: a single queue of one
    queues: list[Queue]  # in the order of the layout
    producers: list[str | None]  # of these queues; None: a stream
    queries: list[str]  # that its steps, and those of turns that follow, may put out results of


class ActorRunner(BatchRunner):
    """Runs turns on hosts, one station in each while there are enough; only reports return.

    An arrived batch goes to its host with the next grant, so that queues are filled in the order of the ledger.
    """

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock, host_pool: HostPool | None = None) -> None:
        self._own = host_pool is None
        self._started_ray = host_pool is None and not ray.is_initialized()
        if self._started_ray:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            start_ray(LOCAL_RAY_OPTIONS)
        self.host_pool = host_pool or HostPool.of(min(len(plan.stations), DEFAULT_ACTORS))
        self.occupied = 0.0
        self._arrivals: dict[int, list[Arrival]] = {}
        self._produced: Counter[str] = Counter()  # by station: batches it has output
        self._contents: dict[int, QueueContents] = {}  # by host, until something changes
        self._known: dict[int, KnownSegment] = {}  # what hosts have learned, by segment; single queues below 0
        self._known_cut = -1  # the ledger's cut of which they are
        self._armed = 0  # the epoch at which the engine knew all that others had asked of it
        super().__init__(plan, ledger, clock)
        self.continues = self._measured and not ledger.merges
        self._open_stations(self._assign_hosts(plan.stations), {state.name: state for state in self._hosts})
        self._route()

    def deliver(self, queue: Queue, batch: Batch | BatchRef, since: float) -> None:
        """Hold a batch for the host that reads it until its next grant."""
        place = self.places[queue.station.name]
        self._contents.clear()
        waiting, read = self._arrivals.setdefault(place, []), (queue.station.name, queue.port)
        if waiting and waiting[-1].batch is batch:
            waiting[-1] = waiting[-1]._replace(queues=(*waiting[-1].queues, read))
        else:
            waiting.append(Arrival(batch, (read,), since))

    def run(self, segment: Segment, share: Share, now: float) -> list[Step]:
        if self.exact and share.tuples > 1:
            self._deliver_arrivals(segment.queues)
        known = self._teach(segment.serial, segment.queues, segment.after, segment)
        starting = {station.name: cost for station, cost in startup_costs(segment).items()}
        costs = segment.queue_costs(self._measured) if share.time < math.inf else None
        turn = self._make_turn(segment.start(), segment.after, share, now, costs, starting, segment.queues)
        return self._run_turn(known, turn)

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        known = self._teach(-1 - queue.index, (queue,), {})
        starting = {queue.station.name: startup} if startup else {}
        return self._run_turn(known, self._make_turn(queue, {}, Share(most, 0.0), at, None, starting))[0]

    def arm(self) -> None:
        self._armed = self.host_pool.epoch.value

    def recall(self) -> None:
        self.host_pool.epoch.raise_by_one()

    def operator(self, station: Station) -> Operator:
        return station.operator

    def waiting_since(self) -> float:
        there = self.host_pool.each(lambda _, host: send(host.waiting_since))
        here = (arrival.since for arrivals in self._arrivals.values() for arrival in arrivals)
        return float(min([*there, *here]))

    def migrate(self, plan: Plan, ledger: Ledger, state: Mapping[str, StationState]) -> ActorRunner:
        after = super().migrate(plan, ledger, state)
        assert isinstance(after, ActorRunner)
        after._produced, after._known, after._known_cut = Counter(self._produced), {}, -1
        after.continues, after.continued = self._measured and not ledger.merges, []
        names = {station.name for station in plan.stations}
        after.places = {name: place for name, place in self.places.items() if name in names}
        new = [station for station in plan.stations if station.name not in after.places]
        hosts = {station.name: after._hosts[station.index] for station in new}
        after._open_stations(after._assign_hosts(new), hosts)
        return after

    def finish_migration(self, before: RowRunner) -> None:
        before.drop_states([station.name for station in before.plan.stations if station.name not in self.places])
        self._route()

    def contents(self, queue: Queue) -> list[tuple[float, float]]:
        place = self.places[queue.station.name]
        if place not in self._contents:
            host = self.host_pool.hosts[place]
            self._contents[place] = get_result(
                send(host.contents, self._arrivals.pop(place, []), self._count_produced())
            )
        return self._contents[place][queue.station.name, queue.port]

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        name, place = queue.station.name, self.places[queue.station.name]
        arrivals, produced = self._arrivals.pop(place, []), self._count_produced()
        self._contents.clear()
        shed = self.host_pool.hosts[place].shed
        count, size, head = get_result(send(shed, name, queue.port, places, arrivals, produced))
        queue.take(count, head)
        return count, size

    def _reset_operator(self, station: Station, operator: Operator | None) -> None:
        get_result(
            send(self.host_pool.hosts[self.places[station.name]].reset_operator, station.name, serialize(operator))
        )

    def current_work(self) -> tuple[str, str, str] | None:
        return self.host_pool.current_work()

    def end(self, station: str) -> bool:
        return self.host_pool.kill(self.places[station])

    def state_bytes(self) -> dict[str, float]:
        by_host = self.host_pool.each(lambda _, host: send(host.state_bytes))
        return {name: size for one in by_host for name, size in one.items()}

    def extract_states(self, stations: Iterable[str]) -> dict[str, StationState]:
        states: dict[str, StationState] = {}
        for place, names in self._by_place(stations):
            host, arrivals = self.host_pool.hosts[place], self._arrivals.pop(place, [])
            states.update(deserialize(get_result(send(host.extract_states, names, arrivals, self._count_produced()))))
        return states

    def copy_state(self) -> None:
        """Have all hosts copy their states now, between two turns."""
        produced_counts = self._count_produced()
        contents = self.host_pool.each(
            lambda place, host: send(host.copy_state, self._arrivals.pop(place, []), produced_counts)
        )
        self._contents = dict(enumerate(contents))

    def drop_states(self, stations: Iterable[str]) -> None:
        for place, names in self._by_place(stations):
            get_result(
                send(
                    self.host_pool.hosts[place].remove_stations,
                    names,
                    self._arrivals.pop(place, []),
                    self._count_produced(),
                )
            )

    def close(self) -> None:
        """End the actors, and Ray, if this run started them."""
        if self._own:
            self.host_pool.end()
        else:
            self.host_pool.close()
        if self._started_ray:
            ray.shutdown()
            self._started_ray = False

    def _teach(
        self,
        number: int,
        queues: Sequence[Queue],
        after: Mapping[int, tuple[Queue, ...]],
        segment: Segment | None = None,
    ) -> KnownSegment:
        """Return what hosts know of a segment, after telling them if they do not."""
        forget = self._known_cut != self.ledger.cuts
        if forget:
            self._known, self._known_cut = {}, self.ledger.cuts
        known = self._known.get(number)
        if known is None:
            layout, watched = describe_segment(number, queues, after, self._place, self.may_coalesce)
            producers = [p if isinstance(p := q.station.inputs[q.port], Station) else None for q in watched]
            filling = {self.places[producer.name] for producer in producers if producer is not None}
            self.host_pool.learn(sorted(filling | {queue.place for queue in layout.queues}), layout, forget)
            known = self._known[number] = KnownSegment(
                number,
                segment,
                watched,
                [None if producer is None else producer.name for producer in producers],
                sorted(_queries_downstream(queue.station for queue in watched)),
            )
        return known

    def _make_turn(
        self,
        start: Queue,
        after: Mapping[int, tuple[Queue, ...]],
        share: Share,
        now: float,
        costs: Mapping[int, QueueCost] | None,
        starting: Mapping[str, float],
        queues: Sequence[Queue] = (),
    ) -> TurnCursor[Queue]:
        exact, pieces = self.exact, self._fractional
        return TurnCursor(start, after, share, now, costs, starting, queues, exact=exact, pieces=pieces)

    def _run_turn(self, known: KnownSegment, turn: TurnCursor[Queue]) -> list[Step]:
        place, produced = self._place(turn.start), self._produced
        grant = Grant(
            known.number,
            turn.snapshot(),
            [queue.oldest for queue in known.queues],
            [0 if producer is None else produced[producer] for producer in known.producers],
            {query: self.results[query] for query in known.queries},
            self._arrivals.pop(place, []),
            [],
            {},
            [],
            has_ended=self.ledger.has_ended,
            return_results=self.sink is not None,
            origin=monotonic_s() - self.clock.now() if self._measured else None,
            epoch=self._armed if self.is_forced else None,
        )
        self._contents.clear()
        report = self.host_pool.run_turn(place, grant)
        self.occupied = (self.occupied or 0.0) + report.seconds
        steps = [self._record_step(*step) for step in report.steps]
        if not report.turns:
            return steps
        ends = [begun.first_step for begun in report.turns[1:]] + [len(steps)]
        for begun, end in zip(report.turns, ends, strict=True):
            segment = self._known[begun.layout].segment
            assert segment is not None
            self.continued.append(ContinuedTurn(segment, begun.start, steps[begun.first_step : end]))
        return steps[: report.turns[0].first_step]

    def _place(self, queue: Queue) -> int:
        return self.places[queue.station.name]

    def _deliver_arrivals(self, queues: Iterable[Queue]) -> None:
        """Send the hosts of these queues what has arrived: a turn may begin with one queue and go on with another."""
        for place in {self.places[queue.station.name] for queue in queues} & self._arrivals.keys():
            arrivals, produced = self._arrivals.pop(place), self._count_produced()
            get_result(send(self.host_pool.hosts[place].contents, arrivals, produced))

    def _record_step(self, index: int, done: StepOutcome, made: Batch | None) -> Step:
        """Account for a step that a host ran."""
        queue = self.ledger.queues[index]
        self._produced[queue.station.name] += bool(done.made)
        self.results[queue.station.query.name] += self.sink is None and len(done.result_arrivals) > 0
        return self.record_step(queue, done, made)

    def _open_stations(self, groups: Sequence[Sequence[str]], state: Mapping[str, StationState]) -> None:
        """Bring stations to hosts, by place."""
        self._contents.clear()
        stations = {station.name: station for station in self.plan.stations}
        self.places.update((name, place) for place, names in enumerate(groups) for name in names)
        hosted_stations = [
            [self._make_hosted_station(stations[name], state[name]) for name in names] for names in groups
        ]
        self.host_pool.open(hosted_stations, list(FUNCTION_FOLDERS), self._measured)

    def _assign_hosts(self, stations: Sequence[Station]) -> list[list[str]]:
        """Spread stations over hosts; later ones go to the host with the fewest."""
        if not self.places:
            groups = group_stations(stations, len(self.host_pool.hosts))
            return groups + [[] for _ in range(len(self.host_pool.hosts) - len(groups))]
        count = Counter(self.places.values())
        assigned: list[list[str]] = [[] for _ in self.host_pool.hosts]
        for station in stations:
            place = min(range(len(assigned)), key=lambda place: count[place])
            assigned[place].append(station.name)
            count[place] += 1
        return assigned

    def _make_hosted_station(self, station: Station, state: StationState) -> HostedStation:
        state.measure(None)  # the host measures
        made = [self._produced[p.name] if isinstance(p, Station) else 0 for p in station.inputs]
        return HostedStation(state, station.query.name, self._produced[station.name], made)

    def _route(self) -> None:
        routes: list[dict[str, tuple[OutputRoute, ...]]] = [{} for _ in self.host_pool.hosts]
        queries: list[dict[str, str]] = [{} for _ in self.host_pool.hosts]
        around: list[dict[str, tuple[bool, bool]]] = [{} for _ in self.host_pool.hosts]
        for station in self.plan.stations:
            place, readers = self.places[station.name], self.ledger.outlets[station.index].readers
            routes[place][station.name] = tuple(
                OutputRoute(self.places[reader.station.name], reader.station.name, reader.port) for reader in readers
            )
            queries[place][station.name] = station.query.name
            around[place][station.name] = station.sink, any(consumer.timed for consumer in station.consumers)
        self.host_pool.each(lambda place, host: send(host.route, routes[place], queries[place], around[place]))

    def _by_place(self, stations: Iterable[str]) -> list[tuple[int, list[str]]]:
        by_place: dict[int, list[str]] = {}
        for name in stations:
            by_place.setdefault(self.places[name], []).append(name)
        return list(by_place.items())

    def _count_produced(self) -> dict[tuple[str, int], int]:
        """By queue: the batches that its producer has output."""
        return {
            (queue.station.name, queue.port): self._produced[producer.name] if isinstance(producer, Station) else 0
            for queue in self.ledger.queues
            for producer in (queue.station.inputs[queue.port],)
        }


def _queries_downstream(stations: Iterable[Station]) -> set[str]:
    """The queries of these stations and of all that receive their outputs."""
    found: dict[int, Station] = {}
    waiting = list(stations)
    while waiting:
        station = waiting.pop()
        if station.index not in found:
            found[station.index] = station
            waiting += station.consumers
    return {station.query.name for station in found.values()}
