"""Ledger: every queue's length and oldest sequence number, and the memory of all; never the tuples themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from dsms.engine.ordered_merge import NO_HEAD, OrderedMerge, build_merges
from dsms.plan.graph import Plan, Station, Stream
from dsms.plan.segment import Segment

__all__ = ["NO_HEAD", "Backlog", "Buffer", "FractionalBuffer", "Ledger", "Queue", "SharedBuffer"]


class Queue:
    """One input of a station: a reader of its producer's buffer."""

    __slots__ = (
        "backlog_counted",
        "buffer",
        "changed",
        "changes",
        "copies",
        "count",
        "downstream_merges",
        "entered_head",
        "index",
        "is_plain",
        "merge",
        "oldest",
        "only_segment",
        "outlet",
        "payload",
        "port",
        "read",
        "segments",
        "station",
    )  # fmt: skip

    def __init__(self, station: Station, port: int, index: int, changes: list[Queue]) -> None:
        self.station, self.port, self.index = station, port, index
        self.buffer: Buffer  # of its producer; set when the buffers are made
        self.outlet: Buffer  # of its station's outputs
        self.read: float = 0  # its read pointer in a shared buffer
        self.is_plain = False  # whether a step frees exactly the tuples it takes, when done, and all have one size
        self.copies = 0  # of each output tuple of its station
        self.payload: Any = None  # what the runner keeps with it
        self.count: float = 0
        self.oldest: float = NO_HEAD  # sequence number of its head
        self.segments: list[Segment] = []  # the segments that take from it
        self.only_segment: Segment | None = (
            None  # the only segment that takes from it, if it is that segment's only queue
        )
        self.merge: OrderedMerge[Queue] | None = None  # of its station, if that has several inputs
        self.downstream_merges: tuple[OrderedMerge[Queue], ...] = ()  # all that may wait for its tuples
        self.entered_head: float = NO_HEAD  # its head as last entered with segments of several queues
        self.backlog_counted: float = 0  # tuples that its segments' backlogs already include
        self.changed = False  # since the last decision; if so, it is in `changes`, the ledger's list
        self.changes = changes

    def __repr__(self) -> str:
        return f"Queue({self.station.name}[{self.port}]: {self.count})"

    def put(self, count: float, seq: float) -> None:
        """Add tuples, the first of them with this sequence number."""
        self.count += count
        if self.oldest == NO_HEAD:
            self.oldest = seq
        if not self.changed:
            self.changed = True
            self.changes.append(self)

    def take(self, count: float, head: float) -> None:
        """Remove tuples; `head` is the sequence number of the new head."""
        self.count -= count
        self.oldest = head
        if not self.changed:
            self.changed = True
            self.changes.append(self)


class Backlog(NamedTuple):
    """What a queue held before a migration or in another process."""

    tuples: float
    oldest: float  # sequence number of its head
    size: float  # bytes


class Buffer:
    """A producer's outputs, one copy for each reader; a copy is freed when its reader takes it."""

    __slots__ = ("copies", "readers", "size")

    def __init__(self, readers: tuple[Queue, ...], size: float, shared: bool = False) -> None:
        self.readers, self.size = readers, size
        self.copies = 1 if shared else len(readers)  # of every tuple
        for queue in readers:
            queue.buffer = self

    def release(self, queue: Queue, taken: float, taken_bytes: float) -> tuple[float, float]:
        """Return the tuples and bytes that are freed when a reader takes this much."""
        return taken, taken_bytes

    def restore(self, sizes: Sequence[float]) -> tuple[float, float]:
        """Restore from what the readers' queues hold, with their bytes; return the tuples and bytes in memory."""
        return sum(queue.count for queue in self.readers), sum(sizes)


class SharedBuffer(Buffer):
    """One copy for several readers, each with a read pointer; a tuple is freed when the last reader takes it."""

    __slots__ = ("_behind", "_marks", "_owed", "_weights")

    def __init__(self, readers: tuple[Queue, ...], size: float) -> None:
        super().__init__(readers, size, shared=True)
        self._behind: dict[float, int] = {0: len(readers)}  # pointer -> readers at it
        self._weights: dict[float, float] = {0: 0.0}  # pointer -> bytes up to it
        self._marks: list[float] = [0]  # heap of these pointers; tuples below the lowest are freed
        self._owed: dict[int, float] = {}  # by reader: bytes by which its queue differs from the others at its pointer

    def release(self, queue: Queue, taken: float, taken_bytes: float) -> tuple[float, float]:
        behind, weights, marks = self._behind, self._weights, self._marks
        if self._owed:
            taken_bytes += self._owed.pop(queue.index, 0.0)
        position = queue.read
        queue.read = moved = position + taken
        if moved in behind:
            behind[moved] += 1
        else:
            behind[moved] = 1
            weights[moved] = weights[position] + taken_bytes
            heappush(marks, moved)
        behind[position] -= 1
        if behind[position] or position > marks[0]:
            return 0, 0.0
        before = weights[position]
        while not behind[marks[0]]:  # the last reader has left the lowest pointer, and perhaps the next ones
            passed = heappop(marks)
            del behind[passed], weights[passed]
        return marks[0] - position, weights[marks[0]] - before

    def restore(self, sizes: Sequence[float]) -> tuple[float, float]:
        # Each reader still has to take the last `count` tuples. One that comes from another process may have received
        # them in other batches: `_owed` keeps the difference in bytes.
        end, most = max(queue.count for queue in self.readers), max(sizes)
        self._behind, self._weights = {}, {}
        for queue, size in zip(self.readers, sizes, strict=True):
            queue.read = end - queue.count
            self._behind[queue.read] = self._behind.get(queue.read, 0) + 1
            weight = self._weights.setdefault(queue.read, most - size)
            if most - weight != size:
                self._owed[queue.index] = most - weight - size
        self._marks = sorted(self._behind)
        return end - self._marks[0], most - self._weights[self._marks[0]]


class FractionalBuffer(Buffer):
    """A shared buffer of fractional tuples, where read pointers are almost never equal."""

    __slots__ = ()

    def __init__(self, readers: tuple[Queue, ...], size: float) -> None:
        super().__init__(readers, size, shared=True)

    def release(self, queue: Queue, taken: float, taken_bytes: float) -> tuple[float, float]:
        low = min(reader.read for reader in self.readers)
        queue.read += taken
        freed = min(reader.read for reader in self.readers) - low
        return freed, freed * self.size

    def restore(self, sizes: Sequence[float]) -> tuple[float, float]:
        held = max(queue.count for queue in self.readers)
        for queue in self.readers:
            queue.read = held - queue.count
        return held, held * self.size


class Ledger:
    """All queues of a plan and their memory; a shared tuple counts once."""

    def __init__(self, plan: Plan, sized: bool = False) -> None:
        sizes = {producer.size for producer in plan.producers()}
        self.size = (
            sizes.pop() if len(sizes) == 1 and plan.abstract and not sized else None
        )  # bytes of every tuple; None: sizes differ
        self.queues: list[Queue] = []
        self.changes: list[Queue] = []  # queues that have changed since the last decision
        self.inputs: list[tuple[Queue, ...]] = []  # by station
        self.held: float = 0  # tuples in memory
        self.held_bytes: float = 0.0  # kept only where sizes differ
        self.cuts = 0  # how often segments were connected to the queues
        self.has_ended = False  # whether all streams have ended, so that ordered merges wait for no more tuples
        waiting: dict[int, list[Queue]] = {id(producer): [] for producer in plan.producers()}
        for station in plan.stations:
            first = len(self.queues)
            ports = tuple(Queue(station, port, first + port, self.changes) for port in range(len(station.inputs)))
            self.queues += ports
            self.inputs.append(ports)
            for queue, producer in zip(ports, station.inputs, strict=True):
                waiting[id(producer)].append(queue)
        self.merges = build_merges(plan, self.inputs)
        shared = plan.settings.buffers == "shared"
        several: type[Buffer] = FractionalBuffer if plan.settings.fractional else SharedBuffer

        def buffer_of(producer: Stream | Station) -> Buffer:
            readers = tuple(waiting[id(producer)])
            return (several if shared and len(readers) > 1 else Buffer)(readers, producer.size)

        self.streams = [buffer_of(stream) for stream in plan.streams]
        self.outlets = [buffer_of(station) for station in plan.stations]
        for queue in self.queues:
            queue.outlet = self.outlets[queue.station.index]
            queue.copies = queue.outlet.copies
            queue.is_plain = self.size is not None and plan.settings.in_service and type(queue.buffer) is Buffer

    def restore(self, backlogs: Mapping[tuple[str, int], Backlog]) -> None:
        """Restore the queues, by station and port, from their backlogs."""
        sizes = [0.0] * len(self.queues)
        for queue in self.queues:
            backlog = backlogs.get((queue.station.name, queue.port))
            if backlog is not None:
                queue.count, queue.oldest, sizes[queue.index] = backlog
        for buffer in (*self.streams, *self.outlets):
            if buffer.readers:
                held, held_bytes = buffer.restore([sizes[queue.index] for queue in buffer.readers])
                self.held += held
                self.held_bytes += held_bytes

    def signal_end(self, has_ended: bool) -> bool:
        """Tell the ordered merges whether all streams have ended; return whether that may release tuples."""
        if not self.merges or self.merges[0].uses_bounds or has_ended == self.has_ended:
            return False
        self.has_ended = has_ended
        for merge in self.merges:
            merge.end(has_ended)
            for queue in merge.queues:
                queue.put(0, queue.oldest)
        return True

    def bind(self, segments: Sequence[Segment]) -> None:
        """Connect these segments to the queues, so that their backlogs are kept."""
        self.cuts += 1
        for queue in self.queues:
            queue.segments = []
        for segment in segments:
            segment.queues = tuple(queue for station in segment.stations for queue in self.inputs[station.index])
            segment.only = segment.queues[0] if len(segment.queues) == 1 else None
            place = {queue.index: place for place, queue in enumerate(segment.queues)}
            for queue in segment.queues:
                inside = [reader for reader in queue.outlet.readers if reader.index in place]
                segment.after[queue.index] = tuple(sorted(inside, key=lambda q: -place[q.index]))
            segment.linear = not segment.startup and all(
                queue.merge is None and queue.outlet.readers == segment.queues[at : at + 1]
                for at, queue in enumerate(segment.queues, start=1)
            )
            segment.pending = 0
            segment.heads = []
            for queue in segment.queues:
                queue.segments.append(segment)
        self.changes.clear()
        for queue in self.queues:
            alone = len(queue.segments) == 1 and queue.segments[0].only is queue
            queue.only_segment = queue.segments[0] if alone else None
            queue.backlog_counted = 0
            queue.entered_head = NO_HEAD
            queue.changed = True
            self.changes.append(queue)
