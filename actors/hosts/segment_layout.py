"""SegmentLayout: what hosts learn once of a segment, so that a grant need not describe it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dsms.engine.ledger import Queue
from dsms.engine.ordered_merge import NO_HEAD, OrderedMerge
from dsms.engine.runners.turn_cursor import CursorState


@dataclass(eq=False, slots=True)
class QueueCursor:
    """A queue as a host sees it during a turn: its head, and how far its producer is."""

    index: int
    station: str
    port: int
    place: int  # index of the host that holds it
    coalesce: bool  # whether small batches in it may share a step
    outside: tuple[int, ...]  # indices of other segments' queues that receive what its tuples produce
    oldest: float = 0.0
    produced: int = 0  # batches that its producer has output so far
    merge: OrderedMerge[QueueCursor] | None = None
    downstream: tuple[QueueCursor, ...] = ()  # queues of this layout that receive what its tuples produce


class QueueLayout(NamedTuple):
    """A queue that does not change from turn to turn."""

    number: int  # its index in the ledger
    station: str
    port: int
    place: int
    coalesce: bool
    outside: tuple[int, ...]
    downstream: tuple[int, ...]  # numbers of queues of this layout


class MergeLayout(NamedTuple):
    """The inputs of an ordered merge, and the queues upstream of each, by index."""

    queues: tuple[int, ...]
    above: tuple[tuple[int, ...], ...]
    uses_bounds: bool


class SegmentLayout(NamedTuple):
    """A segment's queues, and the queues for which its merges wait."""

    number: int
    queues: tuple[QueueLayout, ...]
    after: Mapping[int, tuple[int, ...]]  # by queue: the segment's own queues downstream, the first one last
    merges: tuple[MergeLayout, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it describes a whole segment, not a single queue of one."""
        return self.number >= 0

    @classmethod
    def read(cls, fields: Sequence[Any]) -> SegmentLayout:
        """Return a layout from its fields as received."""
        number, queues, after, merges = fields
        return cls(
            number,
            tuple(QueueLayout(*queue) for queue in queues),
            after,
            tuple(MergeLayout(*merge) for merge in merges),
        )


class SegmentCursors:
    """The queue cursors of a layout; a host keeps them from turn to turn."""

    def __init__(self, layout: SegmentLayout) -> None:
        self.began: CursorState | None = None  # how the scheduler's last turn of it began
        self.queues = [QueueCursor(*queue[:6]) for queue in layout.queues]
        self.by_index = {cursor.index: cursor for cursor in self.queues}
        pick = self._pick
        for cursor, queue in zip(self.queues, layout.queues, strict=True):
            cursor.downstream = pick(queue.downstream)
        self.after = {index: pick(following) for index, following in layout.after.items()}
        self._merges = [
            OrderedMerge(pick(merge.queues), [pick(part) for part in merge.above], merge.uses_bounds)
            for merge in layout.merges
        ]
        for merge in self._merges:
            for cursor in merge.queues:
                cursor.merge = merge

    def set_heads(self, heads: Iterable[float], produced: Iterable[int], has_ended: bool) -> None:
        """Set what has changed since the last turn."""
        for cursor, oldest, count in zip(self.queues, heads, produced, strict=True):
            cursor.oldest, cursor.produced = oldest, count
        for merge in self._merges:
            merge.end(has_ended)

    def begin(self, filled: Mapping[int, tuple[int, float]], now: float) -> CursorState | None:
        """Return a turn that begins with the only queue that has tuples, as the scheduler's last one began."""
        if self.began is None:
            return None
        ((index, (produced, oldest)),) = filled.items()
        for cursor in self.queues:
            cursor.oldest, cursor.produced = NO_HEAD, 0
        start = self.by_index[index]
        start.oldest, start.produced = oldest, produced
        return self.began._replace(start=index, pending=(index,), unfinished=(), at=now, began=now)

    @property
    def is_empty(self) -> bool:
        """Whether no queue has tuples."""
        return all(cursor.oldest == NO_HEAD for cursor in self.queues)

    def heads(self) -> tuple[list[float], list[int]]:
        """Return the heads and counts that the next host starts with."""
        return [cursor.oldest for cursor in self.queues], [cursor.produced for cursor in self.queues]

    def _pick(self, indices: Iterable[int]) -> tuple[QueueCursor, ...]:
        return tuple(self.by_index[index] for index in indices)


def describe_segment(
    number: int,
    queues: Sequence[Queue],
    after: Mapping[int, tuple[Queue, ...]],
    place: Callable[[Queue], int],
    may_coalesce: Callable[[Queue], bool],
) -> tuple[SegmentLayout, list[Queue]]:
    """Return the layout of a segment with these queues, and all its queues, ending with those its merges watch."""
    known = {queue.index: queue for queue in queues}
    own = set(known)
    merges = list({id(q.merge): q.merge for q in queues if q.merge is not None}.values())
    for merge in merges:
        known.update((queue.index, queue) for part in (merge.queues, *merge.above) for queue in part)
    described = tuple(
        QueueLayout(
            queue.index,
            queue.station.name,
            queue.port,
            place(queue),
            may_coalesce(queue),
            tuple(reader.index for reader in queue.outlet.readers if reader.index not in own),
            tuple(reader.index for reader in queue.outlet.readers if reader.index in known),
        )
        for queue in known.values()
    )
    layout = SegmentLayout(
        number,
        described,
        {index: _indices(following) for index, following in after.items()},
        tuple(MergeLayout(_indices(m.queues), tuple(map(_indices, m.above)), m.uses_bounds) for m in merges),
    )
    return layout, list(known.values())


def _indices(queues: Iterable[Queue]) -> tuple[int, ...]:
    return tuple(queue.index for queue in queues)
