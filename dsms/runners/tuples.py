"""Individual tuples, one by one: each is a few numbers in a deque, and its fates are drawn before it comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.batch import Column
from dsms.clock import Clock
from dsms.fates import Identities, identities
from dsms.ledger import NOTHING, Ledger, Queue
from dsms.operators import Abstract
from dsms.plan import Plan, Station, Stream
from dsms.runners.base import NONE, Runner, Step
from dsms.schedule import Chunk
from dsms.segment import Segment, Share

Tuple = tuple[int, int, float, float]  # sequence number, key, when it arrived, when it came into this queue
Numbers = NDArray[np.int64]
ITSELF = (0,)  # this very object: a tuple's only child, where that is the tuple itself


class Flow(NamedTuple):
    """Tuples on their way while their fates are drawn: columns of equal length."""

    seq: Numbers
    key: Numbers
    identity: Identities
    port: Numbers
    columns: dict[str, NDArray[Any]]  # what the stream carries: size, cost, cost.OPERATOR

    def pick(self, index: NDArray[Any]) -> Flow:
        columns = {name: column[index] for name, column in self.columns.items()}
        return Flow(self.seq[index], self.key[index], self.identity[index], self.port[index], columns)


class Stock(NamedTuple):
    """What a producer has put out and not all of its readers have taken, the oldest first."""

    seq: Numbers
    arrived: NDArray[np.float64]
    left: Sequence[int]  # by reader: how many of the last of these it has yet to take


class Line:
    """A queue's tuples and all that is needed to work on the next of them without looking anything up."""

    __slots__ = ("carried", "cost", "costs", "fates", "outlets", "sink", "size", "size_out", "sizes", "tuples")

    def __init__(self, queue: Queue, outlets: tuple[Queue, ...]) -> None:
        operator = queue.station.operator
        self.tuples: deque[Tuple] = deque()
        self.cost = operator.cost
        self.size = queue.buffer.size
        self.size_out = operator.size  # None: as its input
        self.sink = queue.station.sink
        self.outlets = outlets
        # What each tuple that will put out something will, by its key; None: itself, always.
        passes = operator.selectivity == 1 and len(queue.station.inputs) == 1
        self.fates: dict[int, tuple[int, ...]] | None = None if passes else {}
        self.carried = False  # whether the stream says something of its tuples:
        self.costs: dict[int, float] = {}  # what to multiply the declared cost by
        self.sizes: dict[int, float] = {}

    def children(self, key: int) -> tuple[int, ...]:
        """What a tuple will put out."""
        drawn = ITSELF if self.fates is None else self.fates.get(key, ())
        return (key,) if drawn is ITSELF else drawn


class TupleRunner(Runner):
    """Runs abstract plans tuple by tuple, in this process."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        for queue in ledger.queues:
            queue.goods = Line(queue, ledger.outlets[queue.station.index].readers)
        self._operators = [_abstract(station).fresh(plan.settings) for station in plan.stations]
        self._sized: dict[int, float] = {}  # where a stream carries sizes: those of the tuples to come
        self._born = 0  # a tuple born inside has a key below 0, one from a stream its number

    def expect(self, chunk: Chunk) -> None:
        flows: dict[int, Flow] = {}
        for place, mine in chunk.by_stream():
            stream = self.plan.streams[place]
            seq, columns = mine + chunk.first, dict(chunk.carries.get(place, {}))
            if "size" in columns:
                self._sized.update(zip(seq.tolist(), columns["size"].tolist(), strict=True))
            who = identities(stream.name, chunk.numbers[mine])
            flows[id(stream)] = Flow(seq, seq, who, np.zeros(len(mine), np.int64), columns)
        self._foresee(flows, {})

    def stock(self, stocks: Sequence[Stock]) -> None:
        """Begin in the middle: these tuples, by producer in the plan's order, wait already, and memory holds them.

        It is done before the first arrival is expected. The numbers are below those of all arrivals, whose first is 0;
        what becomes of the tuples is drawn from the stations on that they wait for.
        """
        waiting: dict[int, Flow] = {}
        ledger, buffers = self.ledger, [*self.ledger.streams, *self.ledger.outlets]
        for producer, buffer, (seq, arrived, left) in zip(self.plan.producers(), buffers, stocks, strict=True):
            keys = -self._born - 1 - np.arange(len(seq))  # as if born inside: no number of an arrival is below 0
            self._born += len(seq)
            who = identities(producer.name, keys)
            flow = Flow(seq, keys, who, np.zeros(len(seq), np.int64), {})
            entries = list(zip(seq.tolist(), keys.tolist(), arrived.tolist(), arrived.tolist(), strict=True))
            ledger.held += len(seq) * buffer.copies
            ledger.held_bytes += len(seq) * buffer.copies * buffer.size
            for queue, mine in zip(buffer.readers, left, strict=True):
                taken = len(seq) - mine
                freed, freed_bytes = buffer.release(queue, taken, taken * buffer.size)
                ledger.held -= freed
                ledger.held_bytes -= freed_bytes
                if mine:
                    queue.goods.tuples.extend(entries[taken:])
                    queue.put(mine, entries[taken][0])
                    waiting[queue.index] = flow.pick(np.arange(taken, len(seq)))
        self._foresee({}, waiting)

    def _foresee(self, flows: dict[int, Flow], waiting: dict[int, Flow]) -> None:
        """Draw the fates of tuples that streams will put out, and of those that wait in queues already."""
        for station, operator in zip(self.plan.stations, self._operators, strict=True):
            parts = []
            for queue, producer in zip(self.ledger.inputs[station.index], station.inputs, strict=True):
                found = (waiting.get(queue.index), flows.get(id(producer)))
                parts += [(queue.port, producer, flow) for flow in found if flow is not None]
            if parts:
                flows[id(station)] = self._draw(station, operator, _together(station, parts))

    def _draw(self, station: Station, operator: Abstract, flow: Flow) -> Flow:
        """Note what this operator will do with each of these; answers what it will put out."""
        lines: list[Line] = [queue.goods for queue in self.ledger.inputs[station.index]]
        for port, line in enumerate(lines):
            _note(line, port, flow, station.name)
        if operator.size is not None:
            flow = flow._replace(columns={name: c for name, c in flow.columns.items() if name != "size"})
        if lines[0].fates is None:
            return flow
        counts = operator.outputs(flow.identity)
        if len(lines) == 1 and counts.max(initial=0) <= 1:
            passed = flow.pick(np.flatnonzero(counts))
            lines[0].fates.update(dict.fromkeys(passed.key.tolist(), ITSELF))
            return passed
        parent, born = operator.offspring(flow.identity, counts, flow.port)
        keys = flow.key[parent]
        # Copies, and one tuple come in by two ports, need keys of their own.
        new = np.flatnonzero((counts[parent] > 1) | (flow.port[parent] > 0))
        keys[new] = -self._born - 1 - np.arange(len(new))
        self._born += len(new)
        for port, line in enumerate(lines):
            _decide(line, flow, counts * (flow.port == port), counts, keys)
        return flow.pick(parent)._replace(key=keys, identity=born)

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        buffer = self.ledger.streams[stream]
        size = self._sized.pop(number, buffer.size) if self._sized else buffer.size
        entry = (seq, number, instant, instant)
        for queue in buffer.readers:
            queue.goods.tuples.append(entry)
            queue.put(1, seq)
        return size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        line: Line = queue.goods
        tuples, fates = line.tuples, line.fates
        seq, key, arrived, since = tuples.popleft()
        children = ITSELF if fates is None else fates.pop(key, ())
        made, cost, sizes = len(children), line.cost + startup, None
        if line.carried:
            cost = line.cost * line.costs.pop(key, 1.0) + startup
            size = line.sizes.pop(key, line.size)
            sizes = size, made * (line.size_out or size)
        queue.count -= 1  # Queue.take, written out: this is done for every tuple
        queue.oldest = tuples[0][0] if tuples else NOTHING
        if not queue.changed:
            queue.changed = True
            queue.changes.append(queue)
        if made:
            done = at + cost
            for outlet in line.outlets:
                for child in (key,) if children is ITSELF else children:
                    outlet.goods.tuples.append((seq, child, arrived, done))
                outlet.put(made, seq)
        return queue, 1, made, cost, since, (arrived,) * made if made and line.sink else NONE, sizes

    def shed(self, queue: Queue, places: Column | None) -> tuple[float, float]:
        line: Line = queue.goods
        given_up = set(range(len(line.tuples)) if places is None else places.tolist())
        keys = [key for place, (_, key, _, _) in enumerate(line.tuples) if place in given_up]
        size = sum(line.sizes.get(key, line.size) for key in keys)
        line.tuples = deque(entry for place, entry in enumerate(line.tuples) if place not in given_up)
        for key in keys:
            self._forget(queue, key)
        queue.take(len(keys), line.tuples[0][0] if line.tuples else NOTHING)
        return len(keys), size

    def _forget(self, queue: Queue, key: int) -> None:
        """What was drawn for a tuple that will not be worked on, here and behind."""
        ahead = [(queue, key)]
        while ahead:
            queue, key = ahead.pop()
            line: Line = queue.goods
            children = line.children(key)
            for drawn in (line.fates or {}, line.costs, line.sizes):
                drawn.pop(key, None)
            ahead += [(reader, child) for reader in queue.outlet.readers for child in children]

    def run(self, segment: Segment, share: Share, now: float) -> list[Step]:
        queue = segment.queues[0]
        if share.tuples != 1 or queue.sole is not segment or not segment.linear:
            return super().run(segment, share, now)
        # One tuple through a row of stations: what passes one is worked on by the next without being queued.
        tuples: deque[Tuple] = queue.goods.tuples
        _, key, arrived, since = tuples.popleft()
        queue.take(1, tuples[0][0] if tuples else NOTHING)
        steps: list[Step] = []
        ahead: list[tuple[tuple[Queue, ...], int, float]] = []
        queues = segment.queues
        while True:
            for queue in queues:
                line: Line = queue.goods
                fates, cost, sizes = line.fates, line.cost, None
                children = ITSELF if fates is None else fates.pop(key, ())
                made = len(children)
                if line.carried:
                    cost *= line.costs.pop(key, 1.0)
                    size = line.sizes.pop(key, line.size)
                    sizes = size, made * (line.size_out or size)
                now += cost
                steps.append((queue, 1, made, cost, since, (arrived,) * made if made and line.sink else NONE, sizes))
                since = now
                if children is not ITSELF:
                    if made:
                        behind = queues[queues.index(queue) + 1 :]
                        ahead += [(behind, child, now) for child in reversed(children)]
                    break
            if not ahead:
                return steps
            queues, key, since = ahead.pop()

    def waiting_since(self) -> float:
        return min((q.goods.tuples[0][3] for q in self.ledger.queues if q.goods.tuples), default=NOTHING)

    def prospects(self) -> dict[str, float]:
        oldest: dict[str, float] = {}
        for queue in self.ledger.queues:
            for _, key, arrived, _ in queue.goods.tuples:
                for name in self._destinations(queue, key):
                    oldest[name] = min(arrived, oldest.get(name, NOTHING))
        return oldest

    def _destinations(self, queue: Queue, key: int) -> set[str]:
        """The queries that this tuple, waiting here, will be a result of."""
        reached: set[str] = set()
        ahead = [(queue, key)]
        while ahead:
            queue, key = ahead.pop()
            children = queue.goods.children(key)
            if children and queue.station.sink:
                reached.add(queue.station.query.name)
            ahead += [(reader, child) for reader in queue.outlet.readers for child in children]
        return reached


def _abstract(station: Station) -> Abstract:
    operator = station.operator
    if not isinstance(operator, Abstract):
        raise TypeError(f"operator {station.name!r} works on real rows; TupleRunner runs abstract tuples only")
    return operator


def _together(station: Station, parts: Sequence[tuple[int, Stream | Station, Flow]]) -> Flow:
    """All that comes into a station, by sequence number: an order that does not depend on the policy."""
    if len(parts) == len(station.inputs) == 1:
        return parts[0][2]._replace(port=np.zeros(len(parts[0][2].seq), np.int64))
    names = {name for _, _, flow in parts for name in flow.columns}
    if len({producer.size for producer in station.inputs}) > 1:
        names.add("size")  # from here on a tuple has the size it came with
    columns = {name: np.concatenate([_filled(name, producer, flow) for _, producer, flow in parts]) for name in names}
    seq, key, identity = (np.concatenate([flow[i] for _, _, flow in parts]) for i in range(3))
    port = np.concatenate([np.full(len(flow.seq), port) for port, _, flow in parts])
    return Flow(seq, key, identity, port, columns).pick(np.argsort(seq, kind="stable"))


def _filled(name: str, producer: Stream | Station, flow: Flow) -> NDArray[Any]:
    """A column where some of the inputs have none: the size is the producer's, a cost what is said for all, or 1."""
    if name in flow.columns:
        return flow.columns[name]
    if name.startswith("cost.") and "cost" in flow.columns:
        return flow.columns["cost"]
    return np.full(len(flow.seq), producer.size if name == "size" else 1.0)


def _note(line: Line, port: int, flow: Flow, station: str) -> None:
    """Keep what the stream says of these tuples' costs and sizes for when they are worked on."""
    costs = flow.columns.get(f"cost.{station}", flow.columns.get("cost"))
    for table, column in (("costs", costs), ("sizes", flow.columns.get("size"))):
        if column is not None:
            mine = flow.port == port
            getattr(line, table).update(zip(flow.key[mine].tolist(), column[mine].tolist(), strict=True))
            line.carried = True


def _decide(line: Line, flow: Flow, mine: Numbers, counts: Numbers, keys: Numbers) -> None:
    """Write down the children of each tuple that comes in by this line."""
    if line.fates is None:
        return
    parents = np.flatnonzero(mine)
    ends = np.cumsum(counts)[parents]
    children = keys.tolist()
    starts = (ends - counts[parents]).tolist()
    for key, start, end in zip(flow.key[parents].tolist(), starts, ends.tolist(), strict=True):
        line.fates[key] = tuple(children[start:end])
