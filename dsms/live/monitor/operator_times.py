"""Measures for how long each operator was running, runnable, blocked or idle since the start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dsms.engine.ledger import Queue
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.measure.histogram import Histogram
from dsms.measure.metric_names import WAIT
from dsms.plan.graph import Plan
from dsms.plan.segment import Segment

if TYPE_CHECKING:
    from dsms.engine.engine import Engine

IDLE, RUNNABLE, BLOCKED = range(3)


class OperatorTime:
    """The times and counters of one operator."""

    __slots__ = ("before", "made", "running", "since", "spent", "state", "taken", "waits")

    def __init__(self, since: float = math.inf) -> None:
        self.state = self.before = IDLE  # now, and before the last change
        self.since = since  # when it last changed
        self.spent = [0.0, 0.0, 0.0]  # by state until then, without running time
        self.running = 0.0
        self.taken: float = 0
        self.made: float = 0
        self.waits = Histogram(WAIT)

    def set_state(self, state: int, now: float) -> None:
        """Enter a state."""
        if now > self.since:
            self.spent[self.state] += now - self.since
            self.since = now
        self.before, self.state = self.state, state

    def work(self, start: float, end: float, taken: float, made: float, wait: float) -> None:
        """Count a step; its time is taken off the state that the operator was in."""
        self.running += end - start
        if start >= self.since:
            self.spent[self.state] -= end - start
        else:  # its state changed during the step
            inside = max(0.0, end - self.since)
            self.spent[self.state] -= inside
            self.spent[self.before] -= end - start - inside
        self.taken += taken
        self.made += made
        self.waits.add(wait)


class OperatorTimes(Observer):
    """Updates only the stations whose queues a turn or an arrival has changed."""

    trusted = True
    _engine: Engine  # once it is attached

    def __init__(self, plan: Plan) -> None:
        self._names = [station.name for station in plan.stations]
        self.accounts = {name: OperatorTime() for name in self._names}
        self.granted = self.used = 0.0  # by turns
        self._ready, self._ready_since = 0, 0.0  # how many operators are runnable, and since when any is
        self._could = 0.0  # seconds in which any was runnable, until then
        self._idle = 0.0
        self._overhead = 0.0  # seconds of turns outside of operators

    def attach(self, engine: Engine) -> None:
        self._engine, self._pace, self._occupied = engine, 1 / engine.clock.budget, engine.runner.occupied
        ledger, self._tracked = engine.ledger, not engine.plan.abstract
        # By queue, and by stream: the stations whose state may change with it.
        self._after_step = [_find_affected((queue, *queue.outlet.readers)) for queue in ledger.queues]
        self._after_arrival = [_find_affected(buffer.readers) for buffer in ledger.streams]
        self._row = [self.accounts[name] for name in self._names]
        self._bytes = [0.0] * len(ledger.queues)
        self._held_bytes = ledger.held_bytes
        if self._tracked and (full := [queue for queue in ledger.queues if queue.count]):
            for queue, size in zip(full, engine.row_runner.held_bytes(full), strict=True):
                self._bytes[queue.index] = size
        now = engine.clock.now()
        self._ready, self._ready_since = 0, now
        for index, account in enumerate(self._row):
            account.since = min(account.since, now)
            account.set_state(self._state(index), now)
            self._ready += account.state == RUNNABLE

    def arrive(self, now: float, stream: int, count: int) -> None:
        if self._tracked:
            buffer, held = self._engine.ledger.streams[stream], self._engine.ledger.held_bytes
            for queue in buffer.readers:
                self._bytes[queue.index] += (held - self._held_bytes) / buffer.copies
            self._held_bytes = held
        self._look(self._after_arrival[stream], now)

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        pace, row, at, sized = self._pace, self._row, start, self._bytes
        touched = self._after_step[steps[0].queue.index]
        for queue, taken, made, cost, since, _, sizes in steps:
            end = at + cost * pace
            row[queue.station.index].work(at, end, taken, made, at - since)
            if queue is not steps[0].queue:
                touched = touched | self._after_step[queue.index]
            if sizes is not None:
                sized[queue.index] = sized[queue.index] - sizes[0] if queue.count else 0.0
                for reader in queue.outlet.readers:
                    sized[reader.index] += sizes[1]
            at = end
        used = at - start
        if self._occupied is not None:
            before, self._occupied = self._occupied, self._engine.runner.occupied or 0.0
            overhead = max(0.0, self._occupied - before - used)
            self._overhead += overhead
            at += overhead
        allowed = self._engine.granted.time * pace
        self.granted += allowed if 0 < allowed < math.inf else used
        self.used += used
        self._held_bytes = self._engine.ledger.held_bytes
        self._look(touched, at)

    def shed(self, now: float, queue: Queue, count: float, size: float) -> None:
        self._bytes[queue.index] = self._bytes[queue.index] - size if queue.count else 0.0
        self._held_bytes = self._engine.ledger.held_bytes
        self._look(_find_affected([queue]), now)

    def accrue_to(self, now: float) -> None:
        """Bring all times up to `now`; call it between two turns."""
        self._look(range(len(self._row)), now)  # all of them: the end of an input changes no queue
        for account in self._row:
            account.set_state(account.state, now)
        if self._ready:
            self._could += max(0.0, now - self._ready_since)
            self._ready_since = max(now, self._ready_since)
        self._idle = max(self._idle, self._could - self.used - self._overhead)

    @property
    def idle_with_work(self) -> float:
        """Seconds in which no operator ran although one was runnable."""
        return self._idle

    def queue_bytes(self, index: int) -> float:
        """Bytes in the queues of a station."""
        queues = self._engine.ledger.inputs[index]
        if not self._tracked:
            return sum(queue.count * queue.buffer.size for queue in queues)
        return sum(max(0.0, self._bytes[queue.index]) for queue in queues if queue.count)

    def migrate(self, plan: Plan) -> OperatorTimes:
        """The times for another plan; stations in both plans continue."""
        after = OperatorTimes(plan)
        after.accounts.update((name, self.accounts[name]) for name in after._names if name in self.accounts)
        after.granted, after.used, after._could = self.granted, self.used, self._could
        after._idle, after._overhead = self._idle, self._overhead
        return after

    def _look(self, stations: Iterable[int], now: float) -> None:
        before, row, inputs = self._ready, self._row, self._engine.ledger.inputs
        for index in stations:
            account, queues = row[index], inputs[index]
            alone = len(queues) == 1  # the common case
            state = (RUNNABLE if queues[0].count else IDLE) if alone else self._state(index)
            if state != account.state:
                self._ready += (state == RUNNABLE) - (account.state == RUNNABLE)
                account.set_state(state, now)
        if before and not self._ready:
            self._could += max(0.0, now - self._ready_since)
        elif self._ready and not before:
            self._ready_since = now

    def _state(self, index: int) -> int:
        queues = self._engine.ledger.inputs[index]
        for queue in queues:
            if queue.count:
                return RUNNABLE if queue.merge is None or queue.merge.next() is not None else BLOCKED
        return IDLE


def _find_affected(queues: Iterable[Queue]) -> frozenset[int]:
    """The stations that read these queues, and the merges downstream that wait for them."""
    own = {queue.station.index for queue in queues}
    return frozenset(own | {merge.queues[0].station.index for queue in queues for merge in queue.downstream_merges})
