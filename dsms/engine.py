"""The loop: admit arrivals, choose a segment, grant it a turn, account for what came of it. Only here does time move."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from dsms.batch import Batch
from dsms.clock import Clock, VirtualClock
from dsms.errors import PlanError, existing
from dsms.ledger import Ledger
from dsms.observers import EVENTS, Observer, listeners
from dsms.plan import Plan, Station
from dsms.policies.base import Policy
from dsms.ready import ReadyOrder
from dsms.runners import Runner, Step, inline_runner
from dsms.schedule import Chunk, Schedule
from dsms.segment import Segment, Share
from dsms.statistics import KINDS

RunnerFactory = Callable[[Plan, Ledger, Clock], Runner]


class Engine:
    """Runs a plan under a policy, on any clock, on any runner."""

    def __init__(
        self,
        plan: Plan,
        policy: Policy,
        *,
        clock: Clock | None = None,
        runner: RunnerFactory | None = None,
        observers: Sequence[Observer] = (),
        until: float | None = None,
        cut: float = math.inf,
    ) -> None:
        self.plan = plan
        self.clock = clock or VirtualClock()
        self.ledger = Ledger(plan)
        self.runner = (runner or inline_runner(plan))(plan, self.ledger, self.clock)
        self.statistics = KINDS[plan.settings.statistics](plan)
        self.admitted = 0
        self._in_service = plan.settings.in_service
        self._schedule = Schedule(plan.streams, plan.settings.seed, plan.settings.until if until is None else until)
        self._buffers = [self.ledger.streams[stream.name] for stream in plan.streams]
        self._cut = cut  # the instant at which everything stops, done or not
        self._arrivals = Chunk.empty()
        self._position = 0  # in it
        self._next_arrival = -math.inf
        self._listen((*observers, self.statistics))
        self._use(policy)
        self._look_ahead()

    def run(self) -> None:
        """Go on until no work is left and none is to come."""
        while self.step():
            pass

    def step(self) -> bool:
        """Give one segment one turn; False when no work is left or to come."""
        now = self.clock.now()
        if now >= self._cut:
            return False
        if self._next_arrival <= now:
            self._admit(now, inclusive=True)
        segment = self._ready.first()
        if segment is None:
            return self._wait_for_arrival()
        for tell in self._on_begin:
            tell(now)
        self.policy.served(segment)
        steps = self.runner.run(segment, self._share(segment), now)
        self._account(now, segment, steps)
        return True

    def swap(self, policy: Policy) -> None:
        """Let another policy decide from the next turn on; queues, state and results stay as they are."""
        before = self.policy
        self._use(policy)
        for tell in self._on_swap:
            tell(self.clock.now(), before, policy)

    def push(self, stream: str, goods: int | Batch) -> None:
        """Admit rows, or a number of abstract tuples, from outside at this instant."""
        names = [s.name for s in self.plan.streams]
        if stream not in names:
            raise PlanError(f"no stream {stream!r}{existing(stream, names)}", file=self.plan.name)
        place, now = names.index(stream), self.clock.now()
        count = len(goods) if isinstance(goods, Batch) else goods
        for tell in self._on_elapse:
            tell(now)
        if isinstance(goods, Batch):
            size = self.runner.push(place, goods, self.admitted, now)
            self.ledger.put(self._buffers[place], count, size, self.admitted)
            self.admitted += count
        else:
            chunk = self._schedule.pushed(place, now, count)
            self.runner.expect(chunk)
            for number in range(chunk.first, chunk.first + count):
                size = self.runner.admit(place, number, self.admitted, now)
                self.ledger.put(self._buffers[place], 1, size, self.admitted)
                self.admitted += 1
        for tell in self._on_arrive:
            tell(now, place, count)

    def remeasure(self, stations: Iterable[Station]) -> None:
        """Statistics of these stations have changed: so have the figures and the ranks of their segments."""
        touched = {id(s): s for station in stations for q in self.ledger.inputs[station.index] for s in q.segments}
        for segment in touched.values():
            segment.measure(self.statistics.of)
            self._ready.touch(segment)

    def _use(self, policy: Policy) -> None:
        self.policy = policy
        segments = policy.segments(self.plan)
        for index, segment in enumerate(segments):
            segment.index = index
            segment.measure(self.statistics.of)
            segment.limit = self._limit(segment)
        self._ready = ReadyOrder(policy, segments, self.ledger)

    def _limit(self, segment: Segment) -> Share:
        """What a turn may take when the policy does not say."""
        time = self.clock.slice if self.plan.settings.slice is None else self.plan.settings.slice
        take = segment.stations[0].operator.take
        if self.plan.settings.fractional:  # there `take` is how much one run takes, and a turn is one run
            take = None
        if time is None:
            return Share(take or 1, math.inf)
        return Share(take or math.inf, time)

    def _share(self, segment: Segment) -> Share:
        wanted, limit = self.policy.share(segment), segment.limit
        if wanted is None:
            return limit
        if self.plan.settings.slice is None:
            return wanted
        return Share(wanted.tuples, min(wanted.time, limit.time))

    def _account(self, start: float, segment: Segment, steps: list[Step]) -> None:
        """Let the turn's time pass, step by step, and write down what changed when."""
        ledger, now = self.ledger, start
        for done, step in enumerate(steps):
            queue, taken, taken_bytes, made, made_bytes, cost, _, head, seq, gone = step
            freed, freed_bytes = ledger.take(queue, taken, taken_bytes, head)
            if not self._in_service:
                ledger.free(freed, freed_bytes)
            now = self.clock.spend(cost)
            if self._next_arrival < now:
                self._admit(min(now, self._cut), inclusive=False)
            if now > self._cut:
                steps = steps[:done]
                break
            for tell in self._on_elapse:
                tell(now)
            if self._in_service:
                ledger.free(freed, freed_bytes)
            if made:
                ledger.put(ledger.outlets[queue.station.index], made, made_bytes, seq)
                if len(gone):
                    for tell in self._on_results:
                        tell(queue.station.query, now, gone)
        for tell in self._on_turn:
            tell(start, segment, steps)

    def _admit(self, limit: float, inclusive: bool) -> None:
        """Admit what has arrived before `limit` (or also at it), each at its own instant."""
        while self._next_arrival < limit or (inclusive and self._next_arrival == limit):
            instant, place = self._next_arrival, self._places[self._position]
            for tell in self._on_elapse:
                tell(instant)
            size = self.runner.admit(place, self._arrivals.first + self._position, self.admitted, instant)
            self.ledger.put(self._buffers[place], 1, size, self.admitted)
            self.admitted += 1
            for tell in self._on_arrive:
                tell(instant, place, 1)
            self._position += 1
            if self._position < len(self._arrivals.instants):
                self._next_arrival = self._arrivals.instants[self._position]
            else:
                self._look_ahead()

    def _look_ahead(self) -> None:
        chunk = self._schedule.chunk()
        if chunk is None:
            self._next_arrival = math.inf
            return
        self.runner.expect(chunk)
        self._arrivals, self._position = chunk, 0
        self._places: list[int] = chunk.streams.tolist()
        self._next_arrival = chunk.instants[0]

    def _wait_for_arrival(self) -> bool:
        if self._next_arrival > self._cut or math.isinf(self._next_arrival):
            return False
        self.clock.wait_until(self._next_arrival)
        return True

    def _listen(self, observers: Sequence[Observer]) -> None:
        hears = {event: listeners(observers, event) for event in EVENTS}
        self._on_elapse, self._on_arrive, self._on_begin = hears["elapse"], hears["arrive"], hears["begin"]
        self._on_results, self._on_turn, self._on_swap = hears["results"], hears["turn"], hears["swap"]
        for observer in observers:
            observer.attach(self)
