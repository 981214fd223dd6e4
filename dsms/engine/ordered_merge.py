"""OrderedMerge: lets a join or union take tuples from its inputs in the order of their arrival.

Babcock et al., "Chain": no tuple is processed before an older one, so a station is blocked while an input is empty.
Bai and Zaniolo, section 4.1: the wait is needless if a lower bound of the empty input's next timestamp is known. The
merge looks that up in the queues upstream: everything older than the next arrival is in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dsms.plan.graph import Plan, Station

if TYPE_CHECKING:
    from dsms.engine.ledger import Queue

NO_HEAD = float("inf")  # sequence number of the head of an empty queue


class QueueHead(Protocol):
    """An input queue as a merge reads it."""

    oldest: float
    port: int


H = TypeVar("H", bound=QueueHead)


class OrderedMerge(Generic[H]):
    """The inputs of one station; tells which of them it may take from."""

    __slots__ = ("_ended", "above", "queues", "uses_bounds")

    def __init__(self, queues: Sequence[H], above: Sequence[Sequence[H]], bounds: bool) -> None:
        self.queues = queues
        self.above = above  # by input: the queues upstream of it
        self.uses_bounds = bounds  # whether heads upstream are bounds of what is still to come
        self._ended = False  # whether all streams have ended

    def head(self, queue: H) -> float:
        """Return the sequence number of the queue's head if it may be taken now, else NO_HEAD."""
        first = queue.oldest
        if first == NO_HEAD:
            return NO_HEAD
        for other in self.queues:
            if other is not queue:
                least = self._least(other)
                # A tuple that comes in by two inputs is taken from the first input first.
                if least < first or (least == first and other.port < queue.port):
                    return NO_HEAD
        return first

    def next(self) -> H | None:
        """Return the input to take from now; None: the station is blocked or has no tuples."""
        return next((queue for queue in self.queues if self.head(queue) != NO_HEAD), None)

    def end(self, ended: bool) -> None:
        """Record whether empty inputs stay empty because all streams have ended."""
        self._ended = ended

    def _least(self, queue: H) -> float:
        """Return a lower bound of the sequence numbers still to come by this input."""
        if queue.oldest != NO_HEAD:
            return queue.oldest
        above = self.above[queue.port]
        if self.uses_bounds:
            return min((upstream.oldest for upstream in above), default=NO_HEAD)
        finished = self._ended and all(upstream.oldest == NO_HEAD for upstream in above)
        return NO_HEAD if finished else -NO_HEAD


def build_merges(plan: Plan, inputs: Sequence[tuple[Queue, ...]]) -> list[OrderedMerge[Queue]]:
    """Return the merges of a plan, and tell each queue which of them depend on it."""
    merges = []
    for station in plan.stations:
        queues = inputs[station.index]
        if len(queues) > 1:
            above = [_queues_upstream(producer, inputs) for producer in station.inputs]
            merge = OrderedMerge(queues, above, plan.settings.bounds)
            merges.append(merge)
            for queue in queues:
                queue.merge = merge
            for queue in {q.index: q for part in (queues, *above) for q in part}.values():
                queue.downstream_merges = (*queue.downstream_merges, merge)
    return merges


def _queues_upstream(producer: object, inputs: Sequence[tuple[Queue, ...]]) -> list[Queue]:
    """Return all queues on the paths from the streams to this producer."""
    found: dict[int, Station] = {}
    ahead = [producer]
    while ahead:
        station = ahead.pop()
        if isinstance(station, Station) and station.index not in found:
            found[station.index] = station
            ahead += station.inputs
    return [queue for index in found for queue in inputs[index]]
