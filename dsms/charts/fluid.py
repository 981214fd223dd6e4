"""The least memory that any scheduler could need, even one that knows the future: work as a fluid, steepest first.

Babcock et al., "Chain" (SIGMOD 2003), section 3: along lower envelopes tuples shrink steadily, and who always works
where they shrink fastest holds at every instant no more than anybody else. As a path's envelope gets flatter, what
is before a piece is always worked on first: so all there is to know is how much of each piece is still to be done.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from dsms.charts.partition import Piece

M = TypeVar("M", bound=Hashable)


class Fluid(Generic[M]):
    """What is left of all that has come, by source and by piece of its chart; time is the time of one CPU."""

    def __init__(self, charts: Sequence[Sequence[Piece[M]]]) -> None:
        # What takes no time is over as soon as it comes, and what frees nothing is never missed.
        kept = [(s, p) for s, pieces in enumerate(charts) for p in pieces if p.time > 0 and p.gain > 0]
        kept.sort(key=lambda entry: -entry[1].slope)
        self._pieces = [piece for _, piece in kept]
        self._sources = [source for source, _ in kept]
        self._of: list[list[int]] = [[] for _ in charts]  # by source: the places of its pieces
        for place, (source, _) in enumerate(kept):
            self._of[source].append(place)
        self._left = [0.0] * len(kept)  # tuples of the source that have not been through this piece
        self._ready: list[int] = []  # a heap of the places where something is left: the steepest first

    @property
    def held(self) -> float:
        """What is in memory."""
        return sum(self._left[place] * self._pieces[place].gain for place in self._ready)

    def add(self, source: int, count: float) -> None:
        """Tuples have come."""
        for place in self._of[source]:
            if not self._left[place]:
                heapq.heappush(self._ready, place)
            self._left[place] += count

    def work(self, time: float) -> None:
        """So much time has been there to work in."""
        while self._ready and time > 0:
            place = self._ready[0]
            needed = self._left[place] * self._pieces[place].time
            if needed > time:
                self._left[place] -= time / self._pieces[place].time
                return
            time -= needed
            self._left[place] = 0.0
            heapq.heappop(self._ready)

    def clear(self) -> None:
        """All is done."""
        for place in self._ready:
            self._left[place] = 0.0
        self._ready.clear()

    def like(self, other: Fluid[M], sources: Mapping[int, int]) -> None:
        """Go on where another was, whose sources have these places here; as much is in memory as was there.

        What was known of an operator goes on with it: other charts may have it in a piece with others.
        """
        known = {
            (sources[other._sources[place]], member): other._left[place]
            for place, piece in enumerate(other._pieces)
            if other._sources[place] in sources
            for member in piece.members
        }
        held = sum(
            other._left[place] * other._pieces[place].gain for place in other._ready if other._sources[place] in sources
        )
        self.clear()
        for place, (source, piece) in enumerate(zip(self._sources, self._pieces, strict=True)):
            self._left[place] = sum(known.get((source, m), 0.0) for m in piece.members) / len(piece.members)
        self._ready = [place for place, left in enumerate(self._left) if left]
        if found := self.held:
            self._left = [left * held / found for left in self._left]
