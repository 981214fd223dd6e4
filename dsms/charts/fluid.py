"""The least memory that any scheduler could need, even one that knows the future: work as a fluid, steepest first.

Babcock et al., "Chain" (SIGMOD 2003), section 3: along lower envelopes tuples shrink steadily, and who always works
where they shrink fastest holds at every instant no more than anybody else. As a path's envelope gets flatter, what
is before a piece is always worked on first: so all there is to know is how much of each piece is still to be done.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from dsms.charts.partition import Piece

M = TypeVar("M", bound=Hashable)


class Fluid(Generic[M]):
    """What is left of all that has come, by source and by piece of its chart; time is the time of one CPU."""

    def __init__(self, charts: Sequence[Sequence[Piece[M]]]) -> None:
        # What takes no time is over as soon as it comes, and what frees nothing is never missed.
        kept = [(s, p) for s, pieces in enumerate(charts) for p in pieces if p.time > 0 and p.gain > 0]
        kept.sort(key=lambda entry: -entry[1].slope)
        self._pieces, self._sources = [piece for _, piece in kept], [source for source, _ in kept]
        self._times = np.array([piece.time for piece in self._pieces])
        self._gains = np.array([piece.gain for piece in self._pieces])
        self._of = [np.flatnonzero(np.array(self._sources) == source) for source in range(len(charts))]
        self._left = np.zeros(len(kept))  # tuples of the source that have not been through this piece
        self._empty = True

    @property
    def held(self) -> float:
        """What is in memory."""
        return float(self._left @ self._gains)

    def add(self, source: int, count: float) -> None:
        """Tuples have come."""
        self._left[self._of[source]] += count
        self._empty = False

    def work(self, time: float) -> None:
        """So much time has been there to work in: the steepest pieces are done, one of them perhaps in part."""
        if self._empty:
            return
        needed = self._left * self._times
        upto = np.cumsum(needed)
        done = int(np.searchsorted(upto, time, side="right"))
        self._left[:done] = 0.0
        self._empty = done == len(self._left)
        if not self._empty:
            spare = time - (upto[done] - needed[done])
            self._left[done] -= min(1.0, max(0.0, spare / needed[done])) * self._left[done]

    def clear(self) -> None:
        """All is done."""
        self._left[:] = 0.0
        self._empty = True

    def like(self, other: Fluid[M], sources: Mapping[int, int]) -> None:
        """Go on where another was, whose sources have these places here; as much is in memory as was there.

        What was known of an operator goes on with it: other charts may have it in a piece with others.
        """
        known: dict[tuple[int, M], float] = {}
        held = 0.0
        for source, piece, left in zip(other._sources, other._pieces, other._left.tolist(), strict=True):
            if source in sources:
                held += left * piece.gain
                known.update(((sources[source], member), left) for member in piece.members)
        for place, (source, piece) in enumerate(zip(self._sources, self._pieces, strict=True)):
            self._left[place] = sum(known.get((source, m), 0.0) for m in piece.members) / len(piece.members)
        if found := self.held:
            self._left *= held / found
        self._empty = not self._left.any()
