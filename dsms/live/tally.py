"""What has left by query, from the beginning: how late, in the buckets of the metrics, and how long it was behind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsms.departures import Departures, Spells
from dsms.live.sums import Floats, Numbers
from dsms.metric_names import LATENCY

EDGES = np.array(LATENCY)


class Tally:
    """A row a query; its memory does not grow."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.counts: Numbers = np.zeros((len(self.names), len(EDGES) + 1), np.int64)  # by bucket, the last without end
        self.sums: Floats = np.zeros(len(self.names))  # of their latencies
        self.stale: Floats = np.zeros(len(self.names))  # time

    def add(self, gone: Departures, pieces: Spells) -> None:
        """These have left, and have been behind for these stretches."""
        latencies, many = gone.left - gone.arrived, len(self.names)
        np.add.at(self.counts, (gone.whose, np.searchsorted(EDGES, latencies)), gone.alike)
        self.sums += np.bincount(gone.whose, latencies * gone.alike, many)
        self.stale += np.bincount(pieces.whose, pieces.until - pieces.since, many)

    def carried(self, names: Sequence[str]) -> Tally:
        """The tally of other queries: those that stay go on."""
        after = Tally(names)
        here = {name: place for place, name in enumerate(self.names)}
        for place, name in enumerate(after.names):
            if name in here:
                after.counts[place] = self.counts[here[name]]
                after.sums[place], after.stale[place] = self.sums[here[name]], self.stale[here[name]]
        return after
