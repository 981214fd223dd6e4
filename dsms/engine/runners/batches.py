"""BatchRunner: runs plans on batches of rows in this process; abstract tuples can run as rows, too."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from dsms.clock import Clock
from dsms.data.batch import Batch, Column
from dsms.data.batch_ref import BatchRef
from dsms.data.outcomes import tuple_identities
from dsms.engine.arrival_schedule import ArrivalChunk
from dsms.engine.ledger import NO_HEAD, Ledger, Queue
from dsms.engine.runners.runner import NO_RESULTS, RowRunner, Step
from dsms.engine.runners.station_state import StationState, StepOutcome
from dsms.operators import Operator
from dsms.operators.state_size import state_bytes
from dsms.plan.graph import Plan, Station, find_surviving_stations

# Freed memory would return to the operating system, and fresh pages cost a batch up to a fourth of its time. After one
# large block is freed, malloc keeps freed memory. No page of the block is touched.
np.empty(24 * 2**20, dtype=np.uint8)


class BatchRunner(RowRunner):
    """Runs any plan in this process, a batch or several small ones a step; in virtual time one row a step."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        self.exact = clock.exact
        self._grain = 1 if self.exact else math.inf
        self._expected: dict[int, Batch] = {}  # by number: the expected arrivals
        self._working: Queue | None = None  # the queue of the latest step
        self._hosts: list[Any] = [self.host(self._make_state(station)) for station in plan.stations]

    def host(self, state: StationState) -> Any:
        """Return the object that holds a station's state: the state itself, in this process."""
        return state

    def deliver(self, queue: Queue, batch: Any, since: float) -> None:
        """Append a batch to a queue."""
        self._hosts[queue.station.index].put(queue.port, batch, since)

    def operator(self, station: Station) -> Operator:
        state: StationState = self._hosts[station.index]
        return state.operator

    def expect(self, chunk: ArrivalChunk) -> None:
        for place, mine in chunk.by_stream():
            stream = self.plan.streams[place]
            who = tuple_identities(stream.name, chunk.numbers[mine])
            columns = dict(chunk.carries.get(place, {}))
            size = 1.0 if self.plan.settings.fractional else columns.pop("size", stream.size)
            cost = columns.pop("cost", 1.0)
            batch = Batch.of(columns, rows=len(mine), identity=who, size=size, cost=cost)
            for row, position in enumerate(mine.tolist()):
                self._expected[chunk.first + position] = batch.pick(slice(row, row + 1))

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        row = self._expected.pop(number)
        size = self.plan.streams[stream].size if self.plan.settings.fractional else row.memory()
        return self._distribute(stream, replace(row, seq=seq, arrived=instant), size, instant)

    def push(self, stream: int, batch: Batch | BatchRef, instant: float) -> float:
        return self._distribute(stream, batch, batch.memory(), instant)

    def _distribute(self, stream: int, batch: Batch | BatchRef, size: float, instant: float) -> float:
        amount = len(batch) or 1  # a watermark without rows counts as one
        for queue in self.ledger.streams[stream].readers:
            self.deliver(queue, batch, instant)
            queue.put(float(amount) if self.plan.settings.fractional else amount, batch.first("seq"))
        return size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        self._working = queue
        host = self._hosts[queue.station.index]
        done, made = host.work(queue.port, startup, min(most, self._grain), self.may_coalesce(queue))
        if done.made:
            for reader in self.ledger.outlets[queue.station.index].readers:
                self.deliver(reader, made, at + done.cost)
        return self.record_step(queue, done, made)

    def may_coalesce(self, queue: Queue) -> bool:
        """Return whether batches in a queue may share a step; a merge downstream takes them one by one, by age.

        Fractional tuples may not: a run that takes a part of them counts them one by one.
        """
        return not (self.exact or self._fractional or queue.downstream_merges)

    def record_step(self, queue: Queue, done: StepOutcome, made: Batch | None) -> Step:
        """Enter a station's step in the ledger and pass its results, if they are in this process, to the sink."""
        queue.take(done.taken, done.head)
        if done.made:
            for reader in self.ledger.outlets[queue.station.index].readers:
                reader.put(done.made, done.seq)
        result_arrivals = cast("Sequence[float]", done.result_arrivals) if len(done.result_arrivals) else NO_RESULTS
        if self.sink is not None and result_arrivals is not NO_RESULTS and made is not None:
            self.sink(queue.station.query.name, made)
        for dead_letter in done.dead_letters:
            self.reject_rows(queue.station.name, dead_letter)
        if done.consecutive_failures:
            self.consecutive_failures[queue.station.name] = done.consecutive_failures
        elif self.consecutive_failures:
            self.consecutive_failures.pop(queue.station.name, None)
        if done.deadline is not None and queue.station.index in self.clock_driven:
            self.deadlines[queue.station.index] = done.deadline
        elif self.deadlines:
            self.deadlines.pop(queue.station.index, None)
        sizes = done.taken_bytes, done.made_bytes
        return Step(queue, done.taken, done.made, done.cost, done.since, result_arrivals, sizes)

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        count, size, head = self._hosts[queue.station.index].shed(queue.port, places)
        queue.take(count, head)
        return count, size

    def reset_operator(self, stations: Iterable[Station], discard_state: bool) -> None:
        for station in stations:
            self._reset_operator(station, station.operator.fresh(self.plan.settings) if discard_state else None)
            self.consecutive_failures.pop(station.name, None)

    def _reset_operator(self, station: Station, operator: Operator | None) -> None:
        state: StationState = self._hosts[station.index]
        state.reset_operator(operator)

    def current_work(self) -> tuple[str, str, str] | None:
        return None if self._working is None else (self._working.station.name, "here", "")

    def waiting_since(self) -> float:
        return float(min((host.waiting_since() for host in self._hosts), default=NO_HEAD))

    def _make_state(self, station: Station) -> StationState:
        return StationState(
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

    def migrate(self, plan: Plan, ledger: Ledger, state: Mapping[str, StationState]) -> BatchRunner:
        after, mine = copy.copy(self), find_surviving_stations(self.plan, plan)
        after.plan, after.ledger = plan, ledger
        after.rejected_rows, after.deadlines = Counter(self.rejected_rows), {}
        after.reasons, after.consecutive_failures = dict(self.reasons), dict(self.consecutive_failures)
        # Without removed queries: a new query of the same name numbers its results from the start.
        after.results = Counter({query.name: self.results[query.name] for query in plan.queries})
        after._hosts = [
            self._hosts[mine[station.name].index] if station.name in mine else after._hosted(station, state)
            for station in plan.stations
        ]
        for station in plan.stations:
            if station.name in mine and mine[station.name].index in self.deadlines:
                after.deadlines[station.index] = self.deadlines[mine[station.name].index]
        return after

    def finish_migration(self, before: RowRunner) -> None:
        stayed = find_surviving_stations(before.plan, self.plan)
        for station in self.plan.stations:
            if station.name in stayed:
                self.set_downstream(station, station.sink, any(consumer.timed for consumer in station.consumers))
        before.drop_states([station.name for station in before.plan.stations if station.name not in stayed])

    def set_downstream(self, station: Station, sink: bool, timed: bool) -> None:
        """Set whether results leave at a station, and whether a station downstream reacts to watermarks."""
        state: StationState = self._hosts[station.index]
        state.sink, state.timed = sink, timed

    def contents(self, queue: Queue) -> list[tuple[float, float]]:
        state: StationState = self._hosts[queue.station.index]
        return state.contents(queue.port)

    def state_bytes(self) -> dict[str, float]:
        return {state.name: state_bytes(state.operator) for state in self._hosts}

    def extract_states(self, stations: Iterable[str]) -> dict[str, StationState]:
        wanted = set(stations)
        return {s.name: self._hosts[s.index].copy_for_transfer() for s in self.plan.stations if s.name in wanted}

    def _hosted(self, station: Station, state: Mapping[str, StationState]) -> Any:
        moved = state.get(station.name)
        return self.host(self._make_state(station) if moved is None else moved.copy_for_transfer(self.clock.meter))
