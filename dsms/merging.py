"""Several inputs read as one: a join or a union takes its tuples in the order of their timestamps.

Babcock et al., "Chain": no tuple is processed before all that are older, so a station is blocked while an input is
empty, whatever waits at the others. Bai and Zaniolo, section 4.1: that wait is for nothing where the empty input can be
asked how old its next tuple can be at the least. Here that is looked up when it is needed: all that has arrived is in
some queue, and what is still to come is younger than anything here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dsms.plan import Plan, Station

if TYPE_CHECKING:
    from dsms.ledger import Queue

NOTHING = float("inf")  # the sequence number of the head of an empty queue: younger than any tuple


class Head(Protocol):
    """An input as a merge sees it."""

    oldest: float
    port: int


H = TypeVar("H", bound=Head)
J = TypeVar("J", bound=Head)


class Merge(Generic[H]):
    """The inputs of one station, and which of them it may take from."""

    __slots__ = ("_bounds", "_ended", "above", "queues")

    def __init__(self, queues: Sequence[H], above: Sequence[Sequence[H]], bounds: bool) -> None:
        self.queues = queues
        self.above = above  # by input: the queues that what comes in there has to pass before
        self._bounds = bounds
        self._ended = False  # whether nothing will arrive any more

    def head(self, queue: H) -> float:
        """The sequence number of a queue's first tuple if that may be taken now, else of nothing."""
        first = queue.oldest
        if first == NOTHING:
            return NOTHING
        for other in self.queues:
            if other is not queue:
                least = self._least(other)
                # Of one tuple that comes in by two inputs, what came by the first goes first.
                if least < first or (least == first and other.port < queue.port):
                    return NOTHING
        return first

    def next(self) -> H | None:
        """The input to take from now, if there is one."""
        return next((queue for queue in self.queues if self.head(queue) != NOTHING), None)

    def like(self, queues: Sequence[J], above: Sequence[Sequence[J]]) -> Merge[J]:
        """The same over what stands for its queues elsewhere."""
        other = Merge(queues, above, self._bounds)
        other.end(self._ended)
        return other

    def end(self, ended: bool) -> None:
        """Whether an input that is empty will stay so."""
        self._ended = ended

    def _least(self, queue: H) -> float:
        """The oldest that may still be taken from this input."""
        if queue.oldest != NOTHING:
            return queue.oldest
        above = self.above[queue.port]
        if self._bounds:
            return min((upstream.oldest for upstream in above), default=NOTHING)
        finished = self._ended and all(upstream.oldest == NOTHING for upstream in above)
        return NOTHING if finished else -NOTHING


def merges_of(plan: Plan, inputs: Sequence[tuple[Queue, ...]]) -> list[Merge[Queue]]:
    """The merges of a plan, every queue told which of them depend on it."""
    merges = []
    for station in plan.stations:
        queues = inputs[station.index]
        if len(queues) > 1:
            above = [_above(producer, inputs) for producer in station.inputs]
            merge = Merge(queues, above, plan.settings.bounds)
            merges.append(merge)
            for queue in queues:
                queue.merge = merge
            for queue in {q.index: q for part in (queues, *above) for q in part}.values():
                queue.below = (*queue.below, merge)
    return merges


def _above(producer: object, inputs: Sequence[tuple[Queue, ...]]) -> list[Queue]:
    """All queues on the way from the streams to what this producer puts out."""
    found: dict[int, Station] = {}
    ahead = [producer]
    while ahead:
        station = ahead.pop()
        if isinstance(station, Station) and station.index not in found:
            found[station.index] = station
            ahead += station.inputs
    return [queue for index in found for queue in inputs[index]]
