"""FluidModel: computes the least memory any scheduler needs, if tuples shrink steadily while they are processed.

Babcock et al., "Chain" (SIGMOD 2003), section 3: along lower envelopes tuples shrink steadily. A scheduler that always
works where they shrink fastest holds the least at every instant. A path's envelope gets flatter, so earlier pieces
always run first, and the remaining work of each piece is the whole state.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from dsms.charts.partition import ChartPiece

M = TypeVar("M", bound=Hashable)


class FluidModel(Generic[M]):
    """The remaining work by source and chart piece; time is that of one CPU."""

    def __init__(self, charts: Sequence[Sequence[ChartPiece[M]]]) -> None:
        # Pieces of no time are done on arrival, and pieces that free nothing do not matter.
        kept = [(s, p) for s, pieces in enumerate(charts) for p in pieces if p.time > 0 and p.gain > 0]
        kept.sort(key=lambda entry: -entry[1].slope)
        self._pieces, self._sources = [piece for _, piece in kept], [source for source, _ in kept]
        self._times = np.array([piece.time for piece in self._pieces])
        self._gains = np.array([piece.gain for piece in self._pieces])
        self._of = [np.flatnonzero(np.array(self._sources) == source) for source in range(len(charts))]
        self._left = np.zeros(len(kept))  # by piece: tuples of its source still to pass it
        self._empty = True

    @property
    def held(self) -> float:
        """The tuples or bytes in memory."""
        return float(self._left @ self._gains)

    def add(self, source: int, count: float) -> None:
        """Add tuples of a source."""
        self._left[self._of[source]] += count
        self._empty = False

    def work(self, time: float) -> None:
        """Work for this long: finish the steepest pieces, the last one perhaps in part."""
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
        """Finish all work."""
        self._left[:] = 0.0
        self._empty = True

    def migrate_from(self, other: FluidModel[M], sources: Mapping[int, int]) -> None:
        """Continue from another model whose sources have these indices here; memory stays the same.

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
