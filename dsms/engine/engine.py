"""Engine: admits arrivals, lets the policy choose a segment, runs it for a turn, and advances the clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dsms.clock import Clock, VirtualClock
from dsms.data.batch import Batch
from dsms.data.batch_ref import BatchRef
from dsms.data.journal import FLUSH_RESULTS, FLUSH_TURNS, Journal
from dsms.durations import MICROS_PER_S
from dsms.engine.arrival_schedule import ArrivalChunk, count_pushed, schedule_arrivals
from dsms.engine.control import ONE_TUPLE, EngineControl
from dsms.engine.ledger import Ledger, Queue
from dsms.engine.observers import Observer, ObserverList
from dsms.engine.policy import Policy
from dsms.engine.runners import DeadLetterSink, Runner, Sink, Step, inline_runner
from dsms.engine.runners.runner import NO_RESULTS, StepFields, as_row_runner, name_steps
from dsms.engine.shedding import Shedder
from dsms.engine.starvation import StarvationGuard
from dsms.engine.statistics import STATISTICS_KINDS
from dsms.engine.watermarks import Watermarks, earliest_deadline_s
from dsms.plan.graph import Plan
from dsms.plan.hosts import number_hosts
from dsms.plan.segment import Segment

RunnerFactory = Callable[[Plan, Ledger, Clock], Runner]


class Engine:
    """Runs a plan under a policy, on any clock and any runner."""

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
        aside: DeadLetterSink | None = None,
    ) -> None:
        self.plan, self.clock = plan, clock or VirtualClock()
        self._schedule = schedule_arrivals(plan, until)
        self.ledger = Ledger(plan, sized=self._schedule.sized)
        self.runner = (runner or inline_runner(plan))(plan, self.ledger, self.clock)
        self.runner.sink, self.runner.on_dead_letter = sink, aside
        self._progress = Watermarks(plan)
        self.runner.clock_driven = self._progress.clock_driven
        self._deadlines = self.runner.deadlines  # empty unless the clock drives streams of operators that wait for time
        self._work = self.runner.work
        self.row_runner = as_row_runner(self.runner)
        self.statistics = STATISTICS_KINDS[plan.settings.statistics](plan, self._schedule.rates)
        self.shedder = Shedder(plan, self.ledger)
        simulated = isinstance(self.clock, VirtualClock)  # on real clocks turns and hops take what they take
        self.turn_cost, self._hop_cost = (plan.settings.turn_cost, plan.settings.hop_cost) if simulated else (0.0, 0.0)
        self.control = EngineControl(self)
        self.granted = ONE_TUPLE  # the share of the last turn
        self.starvations = 0  # decisions where the highest-ranked segment, ready or not, had no work (Raindrop)
        self.overdue = 0  # turns given to segments that had waited longer than `max_wait`
        self.scheduling = 0.0  # time spent on entering priorities into the ready order
        self.admitted, self.lag = 0, 0.0  # lag: while observers handle an arrival, how late its rows are in the mean
        self.journal, self._in_service = Journal(), plan.settings.in_service
        self._sized = self.ledger.size is None  # whether bytes are counted as well as tuples
        self.unfinished_steps: Sequence[Step] = ()  # of the turn that the cut interrupted; the first was in service
        self._host_numbers = number_hosts(plan, self.runner.places) if self._hop_cost else []
        self._cut = cut  # the instant at which the run stops, even within a turn
        self._arrivals, self._position = ArrivalChunk.empty(), 0  # index of the next arrival in the chunk
        self._next_arrival = self._next_event = -math.inf  # the next event is the arrival or the cut
        self.observers = heard = ObserverList()
        self._on_begin, self._on_elapse, self._on_turn = heard.on_begin, heard.on_elapse, heard.on_turn
        self._on_arrive, self._on_taking = heard.on_arrive, heard.on_taking
        self.watch(*observers, self.statistics)
        self.start(policy)
        self._load_next_chunk()

    def run(self) -> None:
        """Run until no work is left and none is to come."""
        while self.step():
            pass

    def step(self) -> bool:
        """Give one segment one turn; False when no work is left or to come."""
        now = self.clock.now()
        if self._next_event <= now:
            self._admit(now, inclusive=True)
            if now >= self._cut:
                return False
        if self._deadlines and earliest_deadline_s(self._deadlines) <= now:
            self._fire_deadlines(now)
        if self.shedder.active:
            self.shedder.drop_excess(self)
        control = self.control
        order = control.ready
        segment = order.first() if not control.is_guarded else order.look(now)
        if segment is None:
            return self._wait_for_arrival()
        if segment.key > order.best:
            self.starvations += 1
        if control.is_guarded:
            segment = self._guard_starvation(now, segment)
            now = self._pass_dead_time(self.turn_cost)
            if now > self._cut:
                return False  # the decision itself took until the cut
        start = now
        for tell in self._on_begin:
            tell(now)
        if control.on_served is not None:
            control.on_served(segment)
        share = self.granted = (
            segment.limit if control.share is None else control.limit_share(control.share(segment), segment)
        )
        if share is ONE_TUPLE and segment.only is not None:  # most turns of a simulation
            steps: Sequence[StepFields] = [self._work(segment.only, now, segment.startup, 1)]
        elif share is ONE_TUPLE and control.policy.traits.stepwise:
            queue = segment.start()
            steps = [self._work(queue, now, queue.station.operator.startup, 1)]
        else:
            self.runner.is_forced = self.runner.continues and not self._deadlines and control.is_choice_forced()
            steps = self.runner.run(segment, share, now)
            for following in self.runner.take_continued():
                self._account(now, segment, steps, start)
                control.record_served(following.segment)
                now, (segment, start, steps) = self.clock.now(), following
        self._account(now, segment, steps, start)
        return True

    def start(self, policy: Policy) -> None:
        """Put the first policy in charge."""
        self.control.start(policy)

    def swap(self, policy: Policy) -> None:
        """Put another policy in charge from the next turn on; queues, operator state and results are untouched."""
        self.control.swap(policy)

    def push(self, stream: str, rows: int | Batch | BatchRef) -> None:
        """Admit rows (a Batch, or a BatchRef to rows elsewhere) or a number of abstract tuples, at this instant."""
        place = self._progress.index_of(stream)
        count = count_pushed(rows, self.plan.streams[place])
        if not count:
            return
        now = self.clock.admit(rows.due if isinstance(rows, BatchRef) else None)
        self.ledger.signal_end(False)
        self.elapse(now)
        self.lag = rows.lag(now) if isinstance(rows, BatchRef) else 0.0
        if not isinstance(rows, int):
            stamp = self._progress.stamp(place, rows, self.admitted, now)
            self._hold(place, count, self.row_runner.push(place, stamp, now))
            self.admitted += count
            self._push_watermarks(self._progress.advance_silent_streams(place), now)
        else:
            chunk = self._schedule.number_pushed(place, now, count)
            self.runner.expect(chunk)
            for number in range(chunk.first, chunk.first + count):
                self._hold(place, 1, self.runner.admit(place, number, self.admitted, now))
                self.admitted += 1
        for tell in self._on_arrive:
            tell(now, place, count)
        self.lag = 0.0

    def advance(self, stream: str, upto: int) -> None:
        """Set the stream's watermark: no more rows with a lower timestamp (microseconds) will arrive."""
        self._push_watermarks(filter(None, [self._progress.advance_watermark(stream, upto)]), self.clock.now())

    def end(self) -> None:
        """End all streams: operators that wait for more rows release what they hold; time stops at the last row."""
        self._push_watermarks(self._progress.end_all(), self.clock.now())

    def finish(self, now: float) -> None:
        """End the run at this instant: flush the journal to the observers and close the runner."""
        self.elapse(now)
        for tell in self._on_taking:
            tell(now)
        self.fold()
        self.row_runner.close()

    def fold(self) -> None:
        """Flush the journal to the observers now, so that their figures are up to date."""
        self.journal.fold(self.observers.on_read)
        self.control.ready.compact()

    def watch(self, *observers: Observer) -> None:
        """Notify these observers from now on."""
        self.observers.add(*observers)
        for observer in observers:
            observer.attach(self)

    def unwatch(self, observer: Observer) -> None:
        """Stop notifying this observer."""
        self.observers.remove(observer)

    def _guard_starvation(self, now: float, segment: Segment) -> Segment:
        """Return the segment to run where the plan limits waiting, and charge the cost of the decision."""
        order, settings = self.control.ready, self.plan.settings
        assert isinstance(order, StarvationGuard)
        if settings.max_wait is not None and (late := order.overdue(now, settings.max_wait)) is not None:
            self.overdue += late is not segment
            segment = late
        if order.operations and settings.scheduling_cost:
            cost = order.operations * settings.scheduling_cost
            self.scheduling += cost
            now = self._catch_up(self.clock.spend(cost))
        order.record_served(segment, now)
        return segment

    def _pass_dead_time(self, time: float) -> float:
        """Let time pass in which no operator works; return when it is over."""
        if time:
            self.clock.wait_until(self.clock.now() + time)
            self._catch_up(self.clock.now())
        return self.clock.now()

    def _catch_up(self, now: float) -> float:
        """Admit what has arrived while no operator worked; return this instant."""
        if self._next_event < now:
            self._admit(now, inclusive=False)
        if now <= self._cut:
            self.elapse(now)
        return now

    def _account(self, now: float, segment: Segment, steps: Sequence[StepFields], start: float) -> None:
        """Advance the clock from `now` step by step, and write to the journal what each step of the turn changed."""
        ledger, journal = self.ledger, self.journal
        hosts, here, left = self._host_numbers, -1, iter(steps)
        for queue, taken, made, cost, since, result_arrivals, sizes in left:
            if hosts and (place := hosts[queue.station.index]) != here:
                here, now = place, self._pass_dead_time(self._hop_cost if here >= 0 else 0.0)
            if now - since > journal.longest_wait:
                journal.longest_wait = now - since
            if not queue.is_plain:
                taken = self._release(now, queue, taken, made, sizes)
            now = self.clock.spend(cost)
            if self._next_event < now:
                self._admit(now, inclusive=False)
                if now > self._cut:
                    done = len(steps) - len(list(left)) - 1
                    steps, self.unfinished_steps = steps[:done], name_steps(steps[done:])
                    break
            journal.instants.append(now)  # `elapse` inlined: this runs for every tuple
            journal.held.append(ledger.held)
            for tell in self._on_elapse:
                tell(now)
            ledger.held += made * queue.copies - taken
            if self._sized:
                journal.held_bytes.append(ledger.held_bytes)
                ledger.held_bytes += self._step_bytes
            if result_arrivals is not NO_RESULTS:
                journal.results(queue.station.query.index, now, result_arrivals)
        if not steps:
            return
        journal.segments.append(segment.serial)
        if self._on_turn:
            named = name_steps(steps)
            for tell in self._on_turn:
                tell(start, segment, named)
        if len(journal.segments) == FLUSH_TURNS or journal.rows > FLUSH_RESULTS:
            self.fold()

    def _release(self, now: float, queue: Queue, taken: float, made: float, sizes: tuple[float, float] | None) -> float:
        """Return the tuples that the step frees when done; free here what leaves memory when the step starts."""
        ledger = self.ledger
        if self._on_taking and self._next_event <= now:
            self._admit(now, inclusive=True)  # observers that look at memory now must see the latest arrivals
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
        """Admit all arrivals before `limit` (`inclusive`: and at it), each at its own instant."""
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
                self._load_next_chunk()

    def elapse(self, now: float) -> None:
        """Journal what memory held up to this instant, before it changes."""
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

    def _push_watermarks(self, watermarks: Iterable[tuple[int, Batch]], now: float, due: float | None = None) -> None:
        """Admit watermarks without rows, in order of arrival like rows."""
        for place, watermark in watermarks:
            self.elapse(now)
            self.row_runner.push(place, replace(watermark, seq=self.admitted, arrived=now if due is None else due), now)
            self._hold(place, 1, 0.0)

    def _fire_deadlines(self, now: float) -> None:
        """Send watermarks down the streams for operators whose deadline has passed."""
        for station, deadline in list(self._deadlines.items()):
            if deadline <= now * MICROS_PER_S:
                del self._deadlines[station]  # the operator sets the next one when it runs
                self._push_watermarks(self._progress.fire_deadline(station, deadline), now, deadline / MICROS_PER_S)

    def _load_next_chunk(self) -> None:
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
            return self.ledger.signal_end(True)
        if self._next_arrival > self._cut:
            return False
        self.clock.wait_until(min(self._next_arrival, earliest_deadline_s(self._deadlines)))
        return True
