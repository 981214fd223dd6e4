"""What the scheduler knows of every queue: how many tuples, how many bytes, how old; never the tuples themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dsms.plan import Plan, Station, Stream
from dsms.segment import Segment

NOTHING = math.inf  # the sequence number of the head of an empty queue: younger than any tuple


class Queue:
    """One input of one station: a reader of its producer's buffer."""

    __slots__ = ("buffer", "bytes", "count", "index", "oldest", "port", "segments", "station")

    def __init__(self, station: Station, port: int, index: int) -> None:
        self.station, self.port, self.index = station, port, index
        self.buffer: Buffer  # set when the buffers are made
        self.count: float = 0
        self.bytes: float = 0.0
        self.oldest: float = NOTHING  # sequence number of its head
        self.segments: list[Segment] = []  # those that take from it

    def __repr__(self) -> str:
        return f"Queue({self.station.name}[{self.port}]: {self.count})"


class Buffer:
    """What a producer has put out for one reader: gone once that reader has taken it."""

    __slots__ = ("readers", "size")

    def __init__(self, readers: tuple[Queue, ...], size: float) -> None:
        self.readers, self.size = readers, size
        for queue in readers:
            queue.buffer = self

    def copies(self) -> int:
        """How many tuples of memory one tuple put in costs."""
        return len(self.readers)

    def release(self, queue: Queue, taken: float, taken_bytes: float) -> tuple[float, float]:
        """What leaves memory, in tuples and bytes, when a reader takes this much."""
        return taken, taken_bytes


class SharedBuffer(Buffer):
    """One copy for several readers, each with its own read pointer: a tuple goes when the last has read it."""

    __slots__ = ("_behind", "_low", "_pointers")

    def __init__(self, readers: tuple[Queue, ...], size: float) -> None:
        super().__init__(readers, size)
        self._pointers = {queue.index: (0, 0.0) for queue in readers}  # tuples and bytes read so far
        self._behind: dict[float, tuple[int, float]] = {0: (len(readers), 0.0)}  # pointer -> readers there, its bytes
        self._low: float = 0

    def copies(self) -> int:
        return 1

    def release(self, queue: Queue, taken: float, taken_bytes: float) -> tuple[float, float]:
        position, read_bytes = self._pointers[queue.index]
        here, bytes_here = self._behind[position]
        moved, moved_bytes = position + taken, read_bytes + taken_bytes
        self._pointers[queue.index] = (moved, moved_bytes)
        self._behind[moved] = (self._behind.get(moved, (0, 0.0))[0] + 1, moved_bytes)
        if here > 1:
            self._behind[position] = (here - 1, bytes_here)
            return 0, 0.0
        del self._behind[position]
        if position > self._low:
            return 0, 0.0
        # The last reader has left the lowest place; the next lowest is at most `taken` further.
        low = position + 1
        while low not in self._behind:
            low += 1
        self._low = low
        return low - position, self._behind[low][1] - bytes_here


class FractionalBuffer(Buffer):
    """A shared buffer of fractional tuples: what the reader furthest behind has still to take."""

    __slots__ = ()

    def copies(self) -> int:
        return 1

    def release(self, queue: Queue, taken: float, taken_bytes: float) -> tuple[float, float]:
        # The ledger has lowered this reader's count already; nobody has written since.
        still = max(reader.count for reader in self.readers)
        freed = max(queue.count + taken, still) - still
        return freed, freed * self.size


class Ledger:
    """All queues of a plan, and the memory they hold with shared tuples counted once."""

    def __init__(self, plan: Plan) -> None:
        self.queues: list[Queue] = []
        self.inputs: list[tuple[Queue, ...]] = []  # by station
        waiting: dict[int, list[Queue]] = {id(producer): [] for producer in (*plan.streams, *plan.stations)}
        for station in plan.stations:
            ports = tuple(Queue(station, port, len(self.queues) + port) for port in range(len(station.inputs)))
            self.queues += ports
            self.inputs.append(ports)
            for queue, producer in zip(ports, station.inputs, strict=True):
                waiting[id(producer)].append(queue)
        shared = plan.settings.buffers == "shared"
        several: type[Buffer] = FractionalBuffer if plan.settings.fractional else SharedBuffer

        def buffer_of(producer: Stream | Station) -> Buffer:
            readers = tuple(waiting[id(producer)])
            return (several if shared and len(readers) > 1 else Buffer)(readers, producer.size)

        self.streams = {stream.name: buffer_of(stream) for stream in plan.streams}
        self.outlets = [buffer_of(station) for station in plan.stations]
        self.held: float = 0  # tuples in memory
        self.held_bytes: float = 0.0
        self.changed: list[Segment] = []  # segments to rank anew

    def bind(self, segments: Sequence[Segment]) -> None:
        """Let these segments be the ones whose backlog is kept."""
        for queue in self.queues:
            queue.segments = []
        self.changed = []
        for segment in segments:
            segment.queues = tuple(queue for station in segment.stations for queue in self.inputs[station.index])
            segment.pending = sum(queue.count for queue in segment.queues)
            segment.oldest = min(queue.oldest for queue in segment.queues)
            segment.changed = True
            self.changed.append(segment)
            for queue in segment.queues:
                queue.segments.append(segment)

    def put(self, buffer: Buffer, count: float, size: float, seq: float) -> None:
        """Tuples came into a buffer: every reader has them before it."""
        copies = buffer.copies()
        self.held += count * copies
        self.held_bytes += size * copies
        changed = self.changed
        for queue in buffer.readers:
            if queue.oldest == NOTHING:
                queue.oldest = seq
            queue.count += count
            queue.bytes += size
            for segment in queue.segments:
                segment.pending += count
                if not segment.changed:
                    segment.changed = True
                    changed.append(segment)

    def take(self, queue: Queue, count: float, size: float, head: float) -> tuple[float, float]:
        """A reader took tuples off its queue, whose head is now another; answers what this frees of memory."""
        if head == NOTHING:  # exactly empty, whatever fractions added up to
            left = queue.count - count
            queue.count = 0
            queue.bytes = 0.0
        else:
            left = 0
            queue.count -= count
            queue.bytes -= size
        queue.oldest = head
        for segment in queue.segments:
            segment.pending -= count + left
            if not segment.changed:
                segment.changed = True
                self.changed.append(segment)
        return queue.buffer.release(queue, count, size)

    def free(self, count: float, size: float) -> None:
        """What was taken has left memory."""
        self.held -= count
        self.held_bytes -= size
