"""TurnCursor: runs a turn's tuples through a segment's operators step by step, also across host processes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from dsms.engine.ordered_merge import NO_HEAD, OrderedMerge
from dsms.plan.segment import Share


class QueueRef(Protocol):
    """A queue that a turn takes from, or its stand-in in another process."""

    index: int
    oldest: float  # sequence number of its head

    @property
    def station(self) -> Hashable: ...
    @property
    def merge(self) -> OrderedMerge[Any] | None: ...


S = TypeVar("S", bound=QueueRef)


T = TypeVar("T", bound=QueueRef, contravariant=True)


class StepExecutor(Protocol[T]):
    """Runs the steps on the queues of one process."""

    def is_local(self, stop: T) -> bool:
        """Return whether the queue is in this process."""

    def run_step(self, stop: T, at: float, startup: float, most: float) -> tuple[float, float, float]:
        """Run one step on the queue and pass on its outputs; return tuples taken, tuples made and the cost."""


class TurnCursor(Generic[S]):
    """Runs a share through a segment depth first: each tuple as far as it goes before the next one starts.

    In virtual time a step is a tuple. In real time it is a batch, and a turn that continues in another process takes
    along all that its share allows and goes there once, because the hop costs more than a batch.
    """

    def __init__(
        self,
        start: S,
        after: Mapping[int, tuple[S, ...]],
        share: Share,
        now: float,
        next_cost: float = 0.0,
        startups: Mapping[Any, float] | None = None,
        *,
        exact: bool = True,
        declared: bool = True,
        pieces: bool = False,
    ) -> None:
        self.start, self._after = start, after
        self._startups = dict(startups or {})  # each is paid once a turn
        self.at = self._began = now
        self._left, self._limit = share.tuples, now + share.time * (1 + 1e-9)
        self._next_cost = next_cost
        self._exact, self._declared, self._pieces = exact, declared, pieces
        self._taken = 0.0
        self._has_moved = False
        self._pending: list[S] = [start]

    def run_until_remote(self, here: StepExecutor[S]) -> S | None:
        """Run all steps that are local; return the remote queue that is next, or None when the turn is over."""
        while True:
            while self._pending:
                stop = self._next_queue(here)
                if stop is None:
                    self._has_moved = True
                    return self._pending[-1]
                first = stop is self.start
                if not first and stop.merge is not None and stop.merge.head(stop) == NO_HEAD:
                    continue  # its new head must wait for an older tuple at another input
                startup = self._startups.pop(stop.station, 0.0) if self._startups else 0.0
                taken, made, cost = here.run_step(stop, self.at, startup, self._step_limit(first))
                self.at += cost
                if first:
                    self._taken += taken
                    self._left -= 1 if self._pieces else taken  # a piece counts as one tuple, whatever its size
                if made:
                    times = int(made) if self._exact and not self._pieces else 1
                    for following in self._after.get(stop.index, ()):
                        self._pending += [following] * times
            if (self._has_moved and not self._exact) or not self._has_more(self.at):
                return None
            self._pending.append(self.start)

    def _next_queue(self, here: StepExecutor[S]) -> S | None:
        """Return the next local queue, or None if the next is remote; in real time local queues go first."""
        if here.is_local(self._pending[-1]):
            return self._pending.pop()
        if self._exact:
            return None
        for place in range(len(self._pending) - 2, -1, -1):
            if here.is_local(self._pending[place]):
                return self._pending.pop(place)
        # Batches bound for another process will take time there, too: estimate it.
        estimated_end = self._began + self._taken * self._next_cost
        return self.start if here.is_local(self.start) and self._has_more(max(self.at, estimated_end)) else None

    def _has_more(self, at: float) -> bool:
        """Return whether the turn may start another tuple; it may come from another input of the first station."""
        if self.start.merge is not None:
            self.start = self.start.merge.next() or self.start
        head = self.start.oldest if self.start.merge is None else self.start.merge.head(self.start)
        return not (head == NO_HEAD or self._left <= 0 or at + self._next_cost > self._limit)

    def _step_limit(self, first: bool) -> float:
        """Return how many tuples the next step may take; inside the segment, the whole batch."""
        if self._exact and not self._pieces:
            return 1
        if not first:
            return NO_HEAD
        if self._pieces or not self._declared or not self._next_cost:
            return self._left
        return min(self._left, max(1.0, (self._limit - self.at) // self._next_cost))
