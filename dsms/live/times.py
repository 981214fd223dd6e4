"""Where each operator's time went, from the beginning: it worked, could have, had to wait, or had nothing to do."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dsms.ledger import Queue
from dsms.metric_names import WAIT
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.runners.base import Step
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine

IDLE, RUNNABLE, BLOCKED = range(3)


class Account:
    """One operator's."""

    __slots__ = ("before", "made", "running", "since", "spent", "state", "taken", "wait_sum", "waits")

    def __init__(self, since: float = math.inf) -> None:
        self.state = self.before = IDLE  # now, and until the last change
        self.since = since  # when it last changed
        self.spent = [0.0, 0.0, 0.0]  # by state, up to then, without the time that it worked
        self.running = 0.0
        self.taken: float = 0
        self.made: float = 0
        self.waits = [0] * (len(WAIT) + 1)
        self.wait_sum = 0.0

    def turn_to(self, state: int, now: float) -> None:
        """It is in this state from now on."""
        if now > self.since:
            self.spent[self.state] += now - self.since
            self.since = now
        self.before, self.state = self.state, state

    def work(self, start: float, end: float, taken: float, made: float, wait: float) -> None:
        """It has worked from then until then, which was not the time it would have been otherwise."""
        self.running += end - start
        if start >= self.since:
            self.spent[self.state] -= end - start
        else:  # something came for it meanwhile
            inside = max(0.0, end - self.since)
            self.spent[self.state] -= inside
            self.spent[self.before] -= end - start - inside
        self.taken += taken
        self.made += made
        self.waits[bisect_left(WAIT, wait)] += 1
        self.wait_sum += wait


class Times(Observer):
    """Looks at those stations only whose queues a turn or an arrival has changed."""

    trusted = True
    _engine: Engine  # once it is attached

    def __init__(self, plan: Plan) -> None:
        self._names = [station.name for station in plan.stations]
        self.accounts = {name: Account() for name in self._names}
        self.granted = self.used = 0.0  # by turns
        self._ready, self._ready_since = 0, 0.0  # how many could work, and since when any could
        self._could = 0.0  # for how long any could, up to then
        self._idle = 0.0
        self._overhead = 0.0  # time of turns, where the work is done, besides what operators took of it

    def attach(self, engine: Engine) -> None:
        self._engine, self._pace, self._occupied = engine, 1 / engine.clock.budget, engine.runner.occupied
        ledger, self._tracked = engine.ledger, not engine.plan.abstract
        # By queue, and by stream: the stations that something else may be true of once it has changed.
        self._after_step = [_concerned((queue, *queue.outlet.readers)) for queue in ledger.queues]
        self._after_arrival = [_concerned(buffer.readers) for buffer in ledger.streams]
        self._row = [self.accounts[name] for name in self._names]
        self._bytes = [0.0] * len(ledger.queues)
        self._held_bytes = ledger.held_bytes
        if self._tracked and (full := [queue for queue in ledger.queues if queue.count]):
            for queue, size in zip(full, engine.runner.held_bytes(full), strict=True):
                self._bytes[queue.index] = size
        now = engine.clock.now()
        self._ready, self._ready_since = 0, now
        for index, account in enumerate(self._row):
            account.since = min(account.since, now)
            account.turn_to(self._state(index), now)
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
        touched = self._after_step[steps[0][0].index]
        for queue, taken, made, cost, since, _, sizes in steps:
            end = at + cost * pace
            row[queue.station.index].work(at, end, taken, made, at - since)
            if queue is not steps[0][0]:
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
        self._look(_concerned([queue]), now)

    def settle(self, now: float) -> None:
        """Between two turns: bring all up to this instant."""
        self._look(range(len(self._row)), now)  # that an input has ended changes no queue
        for account in self._row:
            account.turn_to(account.state, now)
        if self._ready:
            self._could += max(0.0, now - self._ready_since)
            self._ready_since = max(now, self._ready_since)
        self._idle = max(self._idle, self._could - self.used - self._overhead)

    @property
    def idle_with_work(self) -> float:
        """Time in which nobody worked though somebody could have."""
        return self._idle

    def queue_bytes(self, index: int) -> float:
        """What waits for a station."""
        queues = self._engine.ledger.inputs[index]
        if not self._tracked:
            return sum(queue.count * queue.buffer.size for queue in queues)
        return sum(max(0.0, self._bytes[queue.index]) for queue in queues if queue.count)

    def carried(self, plan: Plan) -> Times:
        """The same for another plan: what is known of stations that stay goes on."""
        after = Times(plan)
        after.accounts.update((name, self.accounts[name]) for name in after._names if name in self.accounts)
        after.granted, after.used, after._could = self.granted, self.used, self._could
        after._idle, after._overhead = self._idle, self._overhead
        return after

    def _look(self, stations: Iterable[int], now: float) -> None:
        before, row, inputs = self._ready, self._row, self._engine.ledger.inputs
        for index in stations:
            account, queues = row[index], inputs[index]
            alone = len(queues) == 1  # as nearly all are
            state = (RUNNABLE if queues[0].count else IDLE) if alone else self._state(index)
            if state != account.state:
                self._ready += (state == RUNNABLE) - (account.state == RUNNABLE)
                account.turn_to(state, now)
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


def _concerned(queues: Iterable[Queue]) -> frozenset[int]:
    """The stations that read these queues, and those that wait for what is in them."""
    own = {queue.station.index for queue in queues}
    return frozenset(own | {merge.queues[0].station.index for queue in queues for merge in queue.below})
