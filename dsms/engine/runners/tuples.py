"""TupleRunner: runs abstract plans tuple by tuple; the outcomes of each tuple are drawn before it arrives."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.clock import Clock
from dsms.data.batch import Column
from dsms.data.outcomes import Identities, tuple_identities
from dsms.engine.arrival_schedule import ArrivalChunk
from dsms.engine.ledger import NO_HEAD, Ledger, Queue
from dsms.engine.runners.runner import NO_RESULTS, Runner, StepFields
from dsms.operators import AbstractOperator
from dsms.plan.graph import Plan, Station, Stream
from dsms.plan.segment import Segment, Share

Tuple = tuple[int, int, float, float]  # sequence number, key, when it arrived, when it entered this queue
Numbers = NDArray[np.int64]
PASS_THROUGH = (0,)  # compared by identity: the only child is the tuple itself


class TupleColumns(NamedTuple):
    """Tuples whose outcomes are being drawn: columns of equal length."""

    seq: Numbers
    key: Numbers
    identity: Identities
    port: Numbers
    columns: dict[str, NDArray[Any]]  # from the stream: size, cost, cost.OPERATOR

    def pick(self, index: NDArray[Any]) -> TupleColumns:
        columns = {name: column[index] for name, column in self.columns.items()}
        return TupleColumns(self.seq[index], self.key[index], self.identity[index], self.port[index], columns)


class BufferContents(NamedTuple):
    """A producer's outputs that some reader has still to take, the oldest first."""

    seq: Numbers
    arrived: NDArray[np.float64]
    left: Sequence[int]  # by reader: how many of the last ones it has still to take


class TupleQueue:
    """A queue's tuples, and all that a step needs, without look-ups."""

    __slots__ = ("cost", "costs", "has_columns", "outcomes", "outlets", "sink", "size", "size_out", "sizes", "tuples")

    def __init__(self, queue: Queue, outlets: tuple[Queue, ...]) -> None:
        operator = queue.station.operator
        self.tuples: deque[Tuple] = deque()
        self.cost = operator.cost
        self.size = queue.buffer.size
        self.size_out = operator.size  # None: as its input
        self.sink = queue.station.sink
        self.outlets = outlets
        # By key: the children of each tuple that has any; None: every tuple passes unchanged.
        passes = operator.selectivity == 1 and len(queue.station.inputs) == 1
        self.outcomes: dict[int, tuple[int, ...]] | None = None if passes else {}
        self.has_columns = False  # whether tuples have costs or sizes of their own:
        self.costs: dict[int, float] = {}  # factor of the declared cost
        self.sizes: dict[int, float] = {}

    def children(self, key: int) -> tuple[int, ...]:
        """Return the keys of the tuples that a tuple will put out."""
        drawn = PASS_THROUGH if self.outcomes is None else self.outcomes.get(key, ())
        return (key,) if drawn is PASS_THROUGH else drawn


class TupleRunner(Runner):
    """Runs abstract plans in this process, one tuple a step."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        for queue in ledger.queues:
            queue.payload = TupleQueue(queue, ledger.outlets[queue.station.index].readers)
        self._operators = [_require_abstract(station).fresh(plan.settings) for station in plan.stations]
        self._sized: dict[int, float] = {}  # by number: sizes of expected tuples, where the stream has them
        self._next_inner_key = 0  # tuples made by operators have negative keys, tuples of streams their number

    def expect(self, chunk: ArrivalChunk) -> None:
        flows: dict[int, TupleColumns] = {}
        for place, mine in chunk.by_stream():
            stream = self.plan.streams[place]
            seq, columns = mine + chunk.first, dict(chunk.carries.get(place, {}))
            if "size" in columns:
                self._sized.update(zip(seq.tolist(), columns["size"].tolist(), strict=True))
            who = tuple_identities(stream.name, chunk.numbers[mine])
            flows[id(stream)] = TupleColumns(seq, seq, who, np.zeros(len(mine), np.int64), columns)
        self._draw_outcomes(flows, {})

    def load_buffers(self, contents: Sequence[BufferContents]) -> None:
        """Start with these tuples, by producer in plan order, already queued and held in memory.

        Call it before the first `expect`. Their sequence numbers are below 0, the first arrival's; their outcomes are
        drawn from the stations on that they wait for.
        """
        waiting: dict[int, TupleColumns] = {}
        ledger, buffers = self.ledger, [*self.ledger.streams, *self.ledger.outlets]
        for producer, buffer, (seq, arrived, left) in zip(self.plan.producers(), buffers, contents, strict=True):
            keys = -self._next_inner_key - 1 - np.arange(len(seq))  # negative, like keys of tuples made by operators
            self._next_inner_key += len(seq)
            who = tuple_identities(producer.name, keys)
            flow = TupleColumns(seq, keys, who, np.zeros(len(seq), np.int64), {})
            entries = list(zip(seq.tolist(), keys.tolist(), arrived.tolist(), arrived.tolist(), strict=True))
            ledger.held += len(seq) * buffer.copies
            ledger.held_bytes += len(seq) * buffer.copies * buffer.size
            for queue, mine in zip(buffer.readers, left, strict=True):
                taken = len(seq) - mine
                freed, freed_bytes = buffer.release(queue, taken, taken * buffer.size)
                ledger.held -= freed
                ledger.held_bytes -= freed_bytes
                if mine:
                    queue.payload.tuples.extend(entries[taken:])
                    queue.put(mine, entries[taken][0])
                    waiting[queue.index] = flow.pick(np.arange(taken, len(seq)))
        self._draw_outcomes({}, waiting)

    def _draw_outcomes(self, flows: dict[int, TupleColumns], waiting: dict[int, TupleColumns]) -> None:
        """Draw the outcomes of tuples that streams will put out, and of tuples that are queued already."""
        for station, operator in zip(self.plan.stations, self._operators, strict=True):
            parts = []
            for queue, producer in zip(self.ledger.inputs[station.index], station.inputs, strict=True):
                both = (waiting.get(queue.index), flows.get(id(producer)))
                parts += [(queue.port, producer, flow) for flow in both if flow is not None]
            if parts:
                flows[id(station)] = self._draw(station, operator, _merge_inputs(station, parts))

    def _draw(self, station: Station, operator: AbstractOperator, flow: TupleColumns) -> TupleColumns:
        """Draw what an operator will do with each of these tuples; return its outputs."""
        lines: list[TupleQueue] = [queue.payload for queue in self.ledger.inputs[station.index]]
        for port, line in enumerate(lines):
            _record_costs_and_sizes(line, port, flow, station.name)
        if operator.size is not None:
            flow = flow._replace(columns={name: c for name, c in flow.columns.items() if name != "size"})
        if lines[0].outcomes is None:
            return flow
        counts = operator.outputs(flow.identity)
        if len(lines) == 1 and counts.max(initial=0) <= 1:
            passed = flow.pick(np.flatnonzero(counts))
            lines[0].outcomes.update(dict.fromkeys(passed.key.tolist(), PASS_THROUGH))
            return passed
        parent, born = operator.child_identities(flow.identity, counts, flow.port)
        keys = flow.key[parent]
        # Copies, and a tuple that comes in by two ports, need keys of their own.
        new = np.flatnonzero((counts[parent] > 1) | (flow.port[parent] > 0))
        keys[new] = -self._next_inner_key - 1 - np.arange(len(new))
        self._next_inner_key += len(new)
        for port, line in enumerate(lines):
            _record_children(line, flow, counts * (flow.port == port), counts, keys)
        return flow.pick(parent)._replace(key=keys, identity=born)

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        buffer = self.ledger.streams[stream]
        size = self._sized.pop(number, buffer.size) if self._sized else buffer.size
        entry = (seq, number, instant, instant)
        for queue in buffer.readers:
            queue.payload.tuples.append(entry)
            queue.put(1, seq)
        return size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> StepFields:
        line: TupleQueue = queue.payload
        tuples, outcomes = line.tuples, line.outcomes
        seq, key, arrived, since = tuples.popleft()
        children = PASS_THROUGH if outcomes is None else outcomes.pop(key, ())
        made, cost, sizes = len(children), line.cost + startup, None
        if line.has_columns:
            cost = line.cost * line.costs.pop(key, 1.0) + startup
            size = line.sizes.pop(key, line.size)
            sizes = size, made * (line.size_out or size)
        queue.count -= 1  # `Queue.take` inlined: this runs for every tuple
        queue.oldest = tuples[0][0] if tuples else NO_HEAD
        if not queue.changed:
            queue.changed = True
            queue.changes.append(queue)
        if made:
            done = at + cost
            for outlet in line.outlets:
                for child in (key,) if children is PASS_THROUGH else children:
                    outlet.payload.tuples.append((seq, child, arrived, done))
                outlet.put(made, seq)
        return queue, 1, made, cost, since, (arrived,) * made if made and line.sink else NO_RESULTS, sizes

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        line: TupleQueue = queue.payload
        dropped = set(range(len(line.tuples)) if places is None else places.tolist())
        keys = [key for place, (_, key, _, _) in enumerate(line.tuples) if place in dropped]
        size = sum(line.sizes.get(key, line.size) for key in keys)
        line.tuples = deque(entry for place, entry in enumerate(line.tuples) if place not in dropped)
        for key in keys:
            self._forget(queue, key)
        queue.take(len(keys), line.tuples[0][0] if line.tuples else NO_HEAD)
        return len(keys), size

    def _forget(self, queue: Queue, key: int) -> None:
        """Delete the outcomes drawn for a dropped tuple, here and downstream."""
        pending = [(queue, key)]
        while pending:
            queue, key = pending.pop()
            line: TupleQueue = queue.payload
            children = line.children(key)
            for drawn in (line.outcomes or {}, line.costs, line.sizes):
                drawn.pop(key, None)
            pending += [(reader, child) for reader in queue.outlet.readers for child in children]

    def run(self, segment: Segment, share: Share, now: float) -> Sequence[StepFields]:
        queue = segment.queues[0]
        if share.tuples != 1 or share.time < math.inf or queue.only_segment is not segment or not segment.linear:
            return super().run(segment, share, now)
        # One tuple through a path: the next station takes a station's output without queueing it.
        tuples: deque[Tuple] = queue.payload.tuples
        _, key, arrived, since = tuples.popleft()
        queue.take(1, tuples[0][0] if tuples else NO_HEAD)
        steps: list[StepFields] = []
        pending: list[tuple[tuple[Queue, ...], int, float]] = []
        queues = segment.queues
        while True:
            for queue in queues:
                line: TupleQueue = queue.payload
                outcomes, cost, sizes = line.outcomes, line.cost, None
                children = PASS_THROUGH if outcomes is None else outcomes.pop(key, ())
                made = len(children)
                if line.has_columns:
                    cost *= line.costs.pop(key, 1.0)
                    size = line.sizes.pop(key, line.size)
                    sizes = size, made * (line.size_out or size)
                now += cost
                steps.append(
                    (queue, 1, made, cost, since, (arrived,) * made if made and line.sink else NO_RESULTS, sizes)
                )
                since = now
                if children is not PASS_THROUGH:
                    if made:
                        behind = queues[queues.index(queue) + 1 :]
                        pending += [(behind, child, now) for child in reversed(children)]
                    break
            if not pending:
                return steps
            queues, key, since = pending.pop()

    def waiting_since(self) -> float:
        return min((q.payload.tuples[0][3] for q in self.ledger.queues if q.payload.tuples), default=NO_HEAD)

    def forecast_unfinished(self) -> dict[str, float]:
        """Return, for each query with a result still to come, the arrival of the oldest such tuple."""
        oldest: dict[str, float] = {}
        for queue in self.ledger.queues:
            for _, key, arrived, _ in queue.payload.tuples:
                for name in self._destinations(queue, key):
                    oldest[name] = min(arrived, oldest.get(name, NO_HEAD))
        return oldest

    def _destinations(self, queue: Queue, key: int) -> set[str]:
        """Return the queries that will put out a result from this queued tuple."""
        reached: set[str] = set()
        pending = [(queue, key)]
        while pending:
            queue, key = pending.pop()
            children = queue.payload.children(key)
            if children and queue.station.sink:
                reached.add(queue.station.query.name)
            pending += [(reader, child) for reader in queue.outlet.readers for child in children]
        return reached


def _require_abstract(station: Station) -> AbstractOperator:
    operator = station.operator
    if not isinstance(operator, AbstractOperator):
        raise TypeError(f"operator {station.name!r} works on rows: TupleRunner runs abstract tuples only")
    return operator


def _merge_inputs(station: Station, parts: Sequence[tuple[int, Stream | Station, TupleColumns]]) -> TupleColumns:
    """Merge a station's inputs by sequence number, an order that no policy can change."""
    if len(parts) == len(station.inputs) == 1:
        return parts[0][2]._replace(port=np.zeros(len(parts[0][2].seq), np.int64))
    names = {name for _, _, flow in parts for name in flow.columns}
    if len({producer.size for producer in station.inputs}) > 1:
        names.add("size")  # from here on each tuple has a size of its own
    columns = {
        name: np.concatenate([_fill_column(name, producer, flow) for _, producer, flow in parts]) for name in names
    }
    seq, key, identity = (np.concatenate([flow[i] for _, _, flow in parts]) for i in range(3))
    port = np.concatenate([np.full(len(flow.seq), port) for port, _, flow in parts])
    return TupleColumns(seq, key, identity, port, columns).pick(np.argsort(seq, kind="stable"))


def _fill_column(name: str, producer: Stream | Station, flow: TupleColumns) -> NDArray[Any]:
    """Return a column, or its default where an input lacks it: the producer's size, the common cost, or 1."""
    if name in flow.columns:
        return flow.columns[name]
    if name.startswith("cost.") and "cost" in flow.columns:
        return flow.columns["cost"]
    return np.full(len(flow.seq), producer.size if name == "size" else 1.0)


def _record_costs_and_sizes(line: TupleQueue, port: int, flow: TupleColumns, station: str) -> None:
    """Record the tuples' own costs and sizes for their steps."""
    costs = flow.columns.get(f"cost.{station}", flow.columns.get("cost"))
    for table, column in (("costs", costs), ("sizes", flow.columns.get("size"))):
        if column is not None:
            mine = flow.port == port
            getattr(line, table).update(zip(flow.key[mine].tolist(), column[mine].tolist(), strict=True))
            line.has_columns = True


def _record_children(line: TupleQueue, flow: TupleColumns, mine: Numbers, counts: Numbers, keys: Numbers) -> None:
    """Record the children of each tuple that comes in by this queue."""
    if line.outcomes is None:
        return
    parents = np.flatnonzero(mine)
    ends = np.cumsum(counts)[parents]
    children = keys.tolist()
    starts = (ends - counts[parents]).tolist()
    for key, start, end in zip(flow.key[parents].tolist(), starts, ends.tolist(), strict=True):
        line.outcomes[key] = tuple(children[start:end])
