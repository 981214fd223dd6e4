"""A turn under way: how far it has got through its segment and what is left of it, wherever it is carried on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from dsms.merging import NOTHING, Merge
from dsms.segment import Share


class Stop(Protocol):
    """A queue that a turn takes from, or what stands for it in another process."""

    index: int
    oldest: float  # the number of its head

    @property
    def station(self) -> Hashable: ...
    @property
    def merge(self) -> Merge[Any] | None: ...


S = TypeVar("S", bound=Stop)


T = TypeVar("T", bound=Stop, contravariant=True)


class Place(Protocol[T]):
    """Where goods are."""

    def holds(self, stop: T) -> bool:
        """Whether this queue is here."""

    def visit(self, stop: T, at: float, startup: float, most: float) -> tuple[float, float, float]:
        """Take what one step takes and pass on what comes of it: what was taken, what was made, and its cost."""


class Errand(Generic[S]):
    """Takes a share through a segment depth first: each tuple as far as it goes before the next is begun.

    Where time is exact a step is a tuple. Elsewhere it is a batch, and a turn that has to go on in another process
    takes with it all that its share allows and goes there once: the way costs more than a batch.
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
        self._startups = dict(startups or {})  # to be paid once a turn
        self.at = self._began = now
        self._left, self._limit = share.tuples, now + share.time * (1 + 1e-9)
        self._next_cost = next_cost
        self._exact, self._declared, self._pieces = exact, declared, pieces
        self._taken = 0.0
        self._travelled = False
        self._ahead: list[S] = [start]

    def proceed(self, here: Place[S]) -> S | None:
        """Do all that can be done here; answers the queue elsewhere that is next, or None when the turn is over."""
        while True:
            while self._ahead:
                stop = self._nearest(here)
                if stop is None:
                    self._travelled = True
                    return self._ahead[-1]
                first = stop is self.start
                if not first and stop.merge is not None and stop.merge.head(stop) == NOTHING:
                    continue  # what has just come must wait for an older one at another input
                startup = self._startups.pop(stop.station, 0.0) if self._startups else 0.0
                taken, made, cost = here.visit(stop, self.at, startup, self._most(first))
                self.at += cost
                if first:
                    self._taken += taken
                    self._left -= 1 if self._pieces else taken  # a piece counts as one, whatever its size
                if made:
                    times = int(made) if self._exact and not self._pieces else 1
                    for following in self._after.get(stop.index, ()):
                        self._ahead += [following] * times
            if (self._travelled and not self._exact) or not self._more(self.at):
                return None
            self._ahead.append(self.start)

    def _nearest(self, here: Place[S]) -> S | None:
        """What to do next, if that is here; where batches count and not instants, what is here goes first."""
        if here.holds(self._ahead[-1]):
            return self._ahead.pop()
        if self._exact:
            return None
        for place in range(len(self._ahead) - 2, -1, -1):
            if here.holds(self._ahead[place]):
                return self._ahead.pop(place)
        # What has been taken and has to go elsewhere will take its time, too: as far as that can be foretold.
        foretold = self._began + self._taken * self._next_cost
        return self.start if here.holds(self.start) and self._more(max(self.at, foretold)) else None

    def _more(self, at: float) -> bool:
        """Whether another tuple is to be begun; it may then be one from another input of the same station."""
        if self.start.merge is not None:
            self.start = self.start.merge.next() or self.start
        head = self.start.oldest if self.start.merge is None else self.start.merge.head(self.start)
        return not (head == NOTHING or self._left <= 0 or at + self._next_cost > self._limit)

    def _most(self, first: bool) -> float:
        """How many tuples the next step may take: of what is passed on, all there is in a batch."""
        if self._exact and not self._pieces:
            return 1
        if not first:
            return NOTHING
        if self._pieces or not self._declared or not self._next_cost:
            return self._left
        return min(self._left, max(1.0, (self._limit - self.at) // self._next_cost))
