"""TurnCursor: runs a turn's tuples through a segment's operators step by step, also across host processes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from dsms.engine.ordered_merge import NO_HEAD, OrderedMerge
from dsms.plan.segment import QueueCost, Share

NO_COST = QueueCost(0.0, 0.0)


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


class CursorState(NamedTuple):
    """Where a turn stands, for the process that continues it; queues are given by their indices."""

    start: int
    pending: Sequence[int]
    unfinished: Sequence[int]
    entrances: Sequence[int]
    costs: Mapping[int, QueueCost]
    startups: Mapping[Any, float]
    at: float
    began: float
    left: float
    slice: float
    planned: float
    has_begun: bool
    has_moved: bool
    exact: bool
    pieces: bool

    @classmethod
    def read(cls, fields: Sequence[Any]) -> CursorState:
        """Return a state from its fields as received."""
        state = cls(*fields)
        return state._replace(costs={index: QueueCost(*cost) for index, cost in state.costs.items()})


class StepExecutor(Protocol[T]):
    """Runs the steps on the queues of one process."""

    def is_local(self, stop: T) -> bool:
        """Return whether the queue is in this process."""

    def run_step(self, stop: T, at: float, startup: float, most: float) -> tuple[float, float, float]:
        """Run one step on the queue and pass on its outputs; return tuples taken, tuples made and when it ended."""


class TurnCursor(Generic[S]):
    """Runs a share through a segment depth first: each tuple as far as it goes before the next one starts.

    The turn ends before the step that would pass its slice; only its first step always runs. What is left stays in the
    segment's queues, and the next turn begins with it.

    In virtual time a step is a tuple. In real time it is a batch, and a turn that continues in another process takes
    along all that its share allows and goes there once, because the hop costs more than a batch.
    """

    def __init__(
        self,
        start: S,
        after: Mapping[int, tuple[S, ...]],
        share: Share,
        now: float,
        costs: Mapping[int, QueueCost] | None = None,
        startups: Mapping[Any, float] | None = None,
        queues: Sequence[S] = (),
        *,
        exact: bool = True,
        pieces: bool = False,
    ) -> None:
        self.start, self._after = start, after
        self._startups = dict(startups or {})  # each is paid once a turn
        self.at = self._began = now
        self._left, self._slice = share.tuples, share.time * (1 + 1e-9)
        self._is_timed, self._limit = self._slice < math.inf, now + self._slice
        self._costs = dict(costs or {})  # by queue; without a slice they are not needed
        self._exact, self._pieces = exact, pieces
        self._one_by_one = exact and not pieces
        self._planned = 0.0  # what the tuples that have begun are expected to take, to their end
        self._has_begun = self._has_moved = False
        self._pending: list[S] = [start]
        self._unfinished: list[S] = []  # the segment's inner queues with tuples of earlier turns
        self._entrances: list[S] = []  # its other queues
        if self._is_timed and share.tuples > 1:
            inside = {queue.index for following in after.values() for queue in following}
            # Of equal age the most downstream goes first, which keeps the turns depth first.
            self._unfinished = [q for q in reversed(queues) if q.index in inside and q.oldest != NO_HEAD]
            self._entrances = [q for q in queues if q.index not in inside]

    def snapshot(self) -> CursorState:
        """Return where the turn stands."""
        return CursorState(
            self.start.index,
            _indices(self._pending),
            _indices(self._unfinished),
            _indices(self._entrances),
            self._costs,
            self._startups,
            self.at,
            self._began,
            self._left,
            self._slice,
            self._planned,
            self._has_begun,
            self._has_moved,
            self._exact,
            self._pieces,
        )

    @classmethod
    def restore(cls, state: CursorState, queues: Mapping[int, S], after: Mapping[int, tuple[S, ...]]) -> TurnCursor[S]:
        """Return a turn that goes on from this state, over the queues of this process."""
        cursor = cls.__new__(cls)
        cursor.start, cursor._after = queues[state.start], after
        cursor._pending = [queues[index] for index in state.pending]
        cursor._unfinished = [queues[index] for index in state.unfinished]
        cursor._entrances = [queues[index] for index in state.entrances]
        cursor._costs, cursor._startups = dict(state.costs), dict(state.startups)
        cursor.at, cursor._began, cursor._left = state.at, state.began, state.left
        cursor._slice, cursor._planned = state.slice, state.planned
        cursor._is_timed, cursor._limit = state.slice < math.inf, state.began + state.slice
        cursor._has_begun, cursor._has_moved = state.has_begun, state.has_moved
        cursor._exact, cursor._pieces = state.exact, state.pieces
        cursor._one_by_one = state.exact and not state.pieces
        return cursor

    def run_until_remote(self, here: StepExecutor[S]) -> S | None:
        """Run all steps that are local; return the remote queue that is next, or None when the turn is over."""
        while True:
            while self._pending:
                stop = self._next_queue(here)
                if stop is None:
                    self._has_moved = True
                    return self._pending[-1]
                if not self._can_take(stop):
                    continue
                startup = self._startups.get(stop.station, 0.0) if self._startups else 0.0
                most = self._step_limit(stop, startup)
                if not most:
                    return None  # the slice has no time for it
                self._run_step(here, stop, startup, most)
            self._planned = self.at - self._began
            if (self._has_moved and not self._exact) or not self._has_more(here):
                return None
            self._pending.append(self.start)

    def _run_step(self, here: StepExecutor[S], stop: S, startup: float, most: float) -> None:
        """Run a step, and note the queues with which the turn continues."""
        if startup:
            del self._startups[stop.station]
        before, first = self.at, stop is self.start
        taken, made, self.at = here.run_step(stop, before, startup, most)
        self._has_begun = True
        if first:
            self._left -= 1 if self._pieces else taken  # a piece counts as one tuple, whatever its size
        if not self._exact:
            self._continue_batch(stop, first, taken, self.at - before)
        if made:
            times = int(made) if self._one_by_one else 1
            for following in self._after.get(stop.index, ()):
                self._pending += [following] * times

    def _continue_batch(self, stop: S, first: bool, taken: float, lasted: float) -> None:
        """Note the rest of a batch, and what a row costs where that was not known."""
        cost = self._costs.get(stop.index, NO_COST)
        if cost.trial < math.inf:
            each = lasted / taken
            cost = self._costs[stop.index] = QueueCost(each, cost.path + each)
        if first:
            self._planned += taken * cost.path
        elif stop.oldest != NO_HEAD:
            self._pending.append(stop)  # only a part of the batch fitted, or several batches wait

    def _next_queue(self, here: StepExecutor[S]) -> S | None:
        """Return the next local queue, or None if the next is remote; in real time local queues go first."""
        if here.is_local(self._pending[-1]):
            return self._pending.pop()
        if self._exact:
            return None
        for place in range(len(self._pending) - 2, -1, -1):
            if here.is_local(self._pending[place]):
                return self._pending.pop(place)
        return self.start if not self._has_moved and self._has_more(here) else None

    def _can_take(self, stop: S) -> bool:
        """Return whether the queue has a tuple that waits for no older one at another input."""
        if stop.merge is not None:
            return stop.merge.head(stop) != NO_HEAD
        return self._exact or stop.oldest != NO_HEAD  # in real time one step may have taken all batches

    def _step_limit(self, stop: S, startup: float) -> float:
        """Return how many tuples the next step may take; 0: the slice has no time for one."""
        if not self._is_timed:
            return 1 if self._one_by_one else self._left if stop is self.start else NO_HEAD
        first, cost = stop is self.start, self._costs.get(stop.index, NO_COST)
        time = self._slice
        if self._has_begun:
            time = self._limit - (self._planned_end() if first else self.at)
            if startup + cost.step > time:
                return 0
        if self._one_by_one:
            return 1
        most = min(self._left if first else NO_HEAD, cost.trial)
        return min(most, max(1.0, (time - startup) // cost.path)) if cost.path and not self._pieces else most

    def _has_more(self, here: StepExecutor[S]) -> bool:
        """Return whether the turn may begin with another tuple, and choose its queue."""
        if self._left <= 0:
            return False
        self._choose_start(here)
        if _head(self.start) == NO_HEAD or (not here.is_local(self.start) and not self._exact):
            return False
        return self._planned_end() + self._costs.get(self.start.index, NO_COST).path <= self._limit

    def _choose_start(self, here: StepExecutor[S]) -> None:
        """Choose the queue of the next tuple: what is left inside first, else where the last tuple came from."""
        if self._unfinished:
            for queues in (self._unfinished, self._entrances):
                near = queues if self._exact else [queue for queue in queues if here.is_local(queue)]
                oldest = min(near, key=_head, default=self.start)
                if _head(oldest) != NO_HEAD:
                    self.start = oldest
                    return
        elif self.start.merge is not None:
            self.start = self.start.merge.next() or self.start

    def _planned_end(self) -> float:
        """Return when the tuples that have begun are expected to be done; other processes work on them later."""
        return self.at if self._exact else max(self.at, self._began + self._planned)


def _head(queue: QueueRef) -> float:
    """Return the sequence number of the tuple that may be taken from the queue now, else NO_HEAD."""
    return queue.oldest if queue.merge is None else queue.merge.head(queue)


def _indices(queues: Sequence[QueueRef]) -> list[int]:
    return [queue.index for queue in queues]
