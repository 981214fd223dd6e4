"""The loop: admit arrivals, choose a segment, grant it a turn, account for it; only here does time move."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dsms.batch import Batch
from dsms.clock import Clock, VirtualClock
from dsms.errors import DsmsError, PlanError, existing
from dsms.helm import ONE, Helm
from dsms.journal import FOLD, ROWS, Journal
from dsms.ledger import Ledger, Queue
from dsms.observers import EVENTS, Observer, listeners
from dsms.parcel import Parcel
from dsms.patience import PatientOrder
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.progress import MICROS, Progress, earliest
from dsms.runners import Runner, Step, inline_runner
from dsms.runners.base import NONE, Aside, Sink
from dsms.schedule import Chunk, Schedule
from dsms.segment import Segment, Share
from dsms.statistics import KINDS

RunnerFactory = Callable[[Plan, Ledger, Clock], Runner]


class Engine(Helm):
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
        sink: Sink | None = None,
        aside: Aside | None = None,
    ) -> None:
        self.clock = clock or VirtualClock()
        try:
            self._schedule = Schedule(plan.streams, plan.settings.seed, plan.settings.until if until is None else until)
        except PlanError as error:
            raise error.within("", plan.name) from None
        self.ledger = Ledger(plan, sized=self._schedule.sized)
        self.runner = (runner or inline_runner(plan))(plan, self.ledger, self.clock)
        self.runner.sink, self.runner.aside = sink, aside
        self._progress = Progress(plan)
        self.runner.clocked = self._progress.clocked
        self._deadlines = self.runner.deadlines  # empty unless some operator goes by time, and time by the clock
        self._work = self.runner.work
        super().__init__(plan, KINDS[plan.settings.statistics](plan, self._schedule.rates), self.ledger, self.clock)
        self.starvations = 0  # decisions whose highest-ranked segment, ready or not, had no work (Raindrop)
        self.overdue = 0  # turns of segments that had waited for more than `max_wait`
        self.scheduling = 0.0  # time spent on entering priorities
        self.admitted = 0
        self.lag = 0.0  # while rows are told of that have just come: how long ago they were due, on average
        self.journal, self._in_service = Journal(), plan.settings.in_service
        self._sized = self.ledger.size is None  # then bytes are counted too
        self.undone: Sequence[Step] = ()  # of the turn that a cut fell into: the first was in service
        self._cut = cut  # the instant at which everything stops, done or not
        self._ended = False  # whether those who wait for all their inputs have been told to do so no more
        self._arrivals, self._position = Chunk.empty(), 0  # the position is in it
        self._next_arrival = self._next_event = -math.inf  # the event is the arrival, or the cut if that is earlier
        self._observers: list[Observer] = []
        self.watch(*observers, self.statistics)
        self.start(policy)
        self._look_ahead()

    def run(self) -> None:
        """Go on until no work is left and none is to come."""
        while self.step():
            pass

    def step(self) -> bool:
        """Give one segment one turn; False when no work is left or to come."""
        now = self.clock.now()
        if self._next_event <= now:
            self._admit(now, inclusive=True)
            if now >= self._cut:
                return False
        if self._deadlines and earliest(self._deadlines) <= now:
            self._ring(now)
        if self.shedder.active:
            self.shedder.look(self)
        segment = self._ready.first() if not self._watched else self._ready.look(now)
        if segment is None:
            return self._wait_for_arrival()
        if segment.key > self._ready.best:
            self.starvations += 1
        if self._watched:
            segment = self._patient(now, segment)
            now = self.clock.now()
            if now > self._cut:
                return False  # deciding took until then
        for tell in self._on_begin:
            tell(now)
        if self._served is not None:
            self._served(segment)
        share = self.granted = segment.limit if self._share is None else self._within(self._share(segment), segment)
        if share is ONE and segment.only is not None:  # by far the most turns of a simulation
            steps = [self._work(segment.only, now, segment.startup, 1)]
        elif share is ONE and self.policy.stepwise:
            queue = segment.start()
            steps = [self._work(queue, now, queue.station.operator.startup, 1)]
        else:
            steps = self.runner.run(segment, share, now)
        self._account(now, segment, steps)
        return True

    def push(self, stream: str, goods: int | Batch | Parcel) -> None:
        """Admit rows, here or elsewhere, or a number of abstract tuples, from outside at this instant."""
        place = self._named(stream)
        count = goods if isinstance(goods, int) else len(goods) if isinstance(goods, Batch | Parcel) else -1
        if isinstance(goods, int) and self.plan.streams[place].schema is not None:
            raise DsmsError(f"push of {goods!r} into {stream!r}: it has a schema, so a Batch of rows is wanted")
        if isinstance(goods, bool) or count < 0:
            raise DsmsError(f"push of {goods!r} into {stream!r}: a Batch or a number of tuples is wanted")
        if not count:
            return
        now = self.clock.now()
        self._end(False)
        self.elapse(now)
        self.lag = goods.lag(now) if isinstance(goods, Parcel) else 0.0
        if not isinstance(goods, int):
            stamped = self._progress.stamped(place, goods, self.admitted, now)
            self._hold(place, count, self.runner.push(place, stamped, now))
            self.admitted += count
            self._tell(self._progress.silent(place), now)
        else:
            chunk = self._schedule.pushed(place, now, count)
            self.runner.expect(chunk)
            for number in range(chunk.first, chunk.first + count):
                self._hold(place, 1, self.runner.admit(place, number, self.admitted, now))
                self.admitted += 1
        for tell in self._on_arrive:
            tell(now, place, count)
        self.lag = 0.0

    def advance(self, stream: str, upto: int) -> None:
        """No row with a lower timestamp (microseconds) comes by this stream any more: nobody need wait for one."""
        self._named(stream)
        if not isinstance(upto, int) or isinstance(upto, bool):
            raise DsmsError(f"advance of {stream!r} to {upto!r}: a timestamp in whole microseconds is wanted")
        self._tell(filter(None, [self._progress.told(stream, upto)]), self.clock.now())

    def end(self) -> None:
        """Nothing is pushed any more: what waits for more is let go, and time stops at the last of all rows."""
        self._tell(self._progress.over(), self.clock.now())

    def finish(self, now: float) -> None:
        """Tell everyone that the run has come to its end at this instant."""
        self.elapse(now)
        for tell in self._on_taking:
            tell(now)
        self.fold()
        self.runner.close()

    def fold(self) -> None:
        """Hand the journal on now: for whoever wants to know how things stand at this instant."""
        self.journal.fold(self._on_read)
        self._ready.tidy()

    def watch(self, *observers: Observer) -> None:
        """Tell these of what happens from now on."""
        self._observers += observers
        self._listen()
        for observer in observers:
            observer.attach(self)

    def unwatch(self, observer: Observer) -> None:
        """Tell this one no more."""
        self._observers.remove(observer)
        self._listen()

    def _patient(self, now: float, segment: Segment) -> Segment:
        """The decision where waiting has a limit, or deciding a cost."""
        order, settings = self._ready, self.plan.settings
        assert isinstance(order, PatientOrder)
        if settings.max_wait is not None and (late := order.overdue(now, settings.max_wait)) is not None:
            self.overdue += late is not segment
            segment = late
        if order.operations and settings.scheduling_cost:
            cost = order.operations * settings.scheduling_cost
            self.scheduling += cost
            now = self.clock.spend(cost)
            if self._next_event < now:
                self._admit(now, inclusive=False)
            if now <= self._cut:
                self.elapse(now)
        order.served(segment, now)
        return segment

    def _within(self, wanted: Share | None, segment: Segment) -> Share:
        """What the policy asks for, no more than the operator takes in a run, no longer than the plan's slice."""
        limit = segment.limit
        if wanted is None:
            return limit
        time = wanted.time if self.plan.settings.slice is None else min(wanted.time, limit.time)
        return Share(max(1, min(wanted.tuples, segment.take)), time)

    def _account(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        """Let the turn's time pass, step by step, and write down what changed when."""
        ledger, journal, now = self.ledger, self.journal, start
        for queue, taken, made, cost, since, gone, sizes in steps:
            if now - since > journal.longest_wait:
                journal.longest_wait = now - since
            if not queue.plain:
                taken = self._release(now, queue, taken, made, sizes)
            now = self.clock.spend(cost)
            if self._next_event < now:
                self._admit(now, inclusive=False)
                if now > self._cut:
                    done = _done_by(self._cut, start, steps)
                    steps, self.undone = steps[:done], steps[done:]
                    break
            journal.instants.append(now)  # elapse, written out: this is done for every tuple
            journal.held.append(ledger.held)
            for tell in self._on_elapse:
                tell(now)
            ledger.held += made * queue.copies - taken
            if self._sized:
                journal.held_bytes.append(ledger.held_bytes)
                ledger.held_bytes += self._step_bytes
            if gone is not NONE:
                journal.results(queue.station.query.index, now, gone)
        if not steps:
            return
        journal.segments.append(segment.serial)
        for tell in self._on_turn:
            tell(start, segment, steps)
        if len(journal.segments) == FOLD or journal.rows > ROWS:
            self.fold()

    def _release(self, now: float, queue: Queue, taken: float, made: float, sizes: tuple[float, float] | None) -> float:
        """Where memory is not simply tuples: what a step frees of it when done; what it frees at once, it does here."""
        ledger = self.ledger
        if self._on_taking and self._next_event <= now:
            self._admit(now, inclusive=True)  # who looks at what is held now must see what has just come
        taken_bytes, made_bytes = sizes or (taken * queue.buffer.size, made * queue.outlet.size)
        freed, freed_bytes = queue.buffer.release(queue, taken, taken_bytes)
        if not self._in_service:
            for tell in self._on_taking:
                tell(now)
            ledger.held -= freed
            ledger.held_bytes -= freed_bytes
            freed = freed_bytes = 0
        self._step_bytes = made_bytes * queue.copies - freed_bytes
        return freed

    def _admit(self, limit: float, inclusive: bool) -> None:
        """Admit what has arrived before `limit` (or also at it), each at its own instant."""
        while self._next_event < limit or (inclusive and self._next_event == limit):
            instant = self._next_arrival
            if instant > self._cut:
                return
            self.elapse(instant)
            place = self._places[self._position]
            size = self.runner.admit(place, self._arrivals.first + self._position, self.admitted, instant)
            self._hold(place, 1, size)
            self.admitted += 1
            for tell in self._on_arrive:
                tell(instant, place, 1)
            self._position += 1
            if self._position < len(self._arrivals.instants):
                self._next_arrival = self._arrivals.instants[self._position]
                self._next_event = min(self._next_arrival, self._cut)
            else:
                self._look_ahead()

    def elapse(self, now: float) -> None:
        """Note what was held up to this instant, before anything changes at it."""
        self.journal.instants.append(now)
        self.journal.held.append(self.ledger.held)
        if self._sized:
            self.journal.held_bytes.append(self.ledger.held_bytes)
        for tell in self._on_elapse:
            tell(now)

    def _hold(self, place: int, count: int, size: float) -> None:
        copies = self.ledger.streams[place].copies
        self.ledger.held += count * copies
        self.ledger.held_bytes += size * copies

    def _end(self, ended: bool) -> bool:
        """Whether nothing arrives any more, as far as is known; True if somebody had waited to hear that."""
        if self.plan.settings.bounds or not self.ledger.merges or ended == self._ended:
            return False
        self._ended = ended
        for merge in self.ledger.merges:
            merge.end(ended)
            for queue in merge.queues:
                queue.put(0, queue.oldest)
        return True

    def _named(self, stream: str) -> int:
        """A stream's place in the plan."""
        if stream not in self._progress.places:
            raise PlanError(f"no stream {stream!r}{existing(stream, self._progress.places)}", file=self.plan.name)
        return self._progress.places[stream]

    def _tell(self, tidings: Iterable[tuple[int, Batch]], now: float, due: float | None = None) -> None:
        """Let streams know how far time has come, where no rows do: in its order, as an arrival like any other."""
        for place, tiding in tidings:
            self.elapse(now)
            self.runner.push(place, replace(tiding, seq=self.admitted, arrived=now if due is None else due), now)
            self._hold(place, 1, 0.0)

    def _ring(self, now: float) -> None:
        """Deadlines have passed: those who wait for them are told by way of the streams."""
        for station, deadline in list(self._deadlines.items()):
            if deadline <= now * MICROS:
                del self._deadlines[station]  # until it has run again
                self._tell(self._progress.rung(station, deadline), now, deadline / MICROS)

    def _look_ahead(self) -> None:
        chunk = self._schedule.chunk()
        if chunk is None:
            self._next_arrival, self._next_event = math.inf, self._cut
            return
        self.runner.expect(chunk)
        self._arrivals, self._position = chunk, 0
        self._places: list[int] = chunk.streams.tolist()
        self._next_arrival, self._next_event = chunk.instants[0], min(chunk.instants[0], self._cut)

    def _wait_for_arrival(self) -> bool:
        if math.isinf(self._next_arrival):
            return self._end(True)
        if self._next_arrival > self._cut:
            return False
        self.clock.wait_until(min(self._next_arrival, earliest(self._deadlines)))
        return True

    def _listen(self) -> None:
        heard = (listeners(self._observers, event) for event in EVENTS)
        self._on_read, self._on_elapse, self._on_arrive, self._on_begin, *others = heard
        self._on_taking, self._on_turn, self._on_swap, self._on_shed = others


def _done_by(instant: float, start: float, steps: Sequence[Step]) -> int:
    """How many steps of a turn were done when the run was cut."""
    ends = itertools.accumulate((step[3] for step in steps), initial=start)
    return sum(end <= instant for end in ends) - 1
