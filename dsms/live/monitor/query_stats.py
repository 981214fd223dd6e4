"""Counts latency (in the buckets of the metrics) and staleness of each query since the start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsms.measure.completions import Completions, StaleIntervals
from dsms.measure.histogram import HistogramTable
from dsms.measure.metric_names import LATENCY
from dsms.measure.sliding_sums import Floats


class QueryStats:
    """One row of counters per query; its memory does not grow."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.latency = HistogramTable(len(self.names), LATENCY)
        self.stale: Floats = np.zeros(len(self.names))  # seconds

    def add(self, completions: Completions, pieces: StaleIntervals) -> None:
        """Count these completions and these intervals of staleness."""
        latencies = completions.left - completions.arrived
        self.latency.add_all(completions.query_index, latencies, completions.alike)
        self.stale += np.bincount(pieces.query_index, pieces.until - pieces.since, len(self.names))

    def migrate(self, names: Sequence[str]) -> QueryStats:
        """The counters for another set of queries; queries in both sets keep their counts."""
        after = QueryStats(names)
        here = {name: place for place, name in enumerate(self.names)}
        for place, name in enumerate(after.names):
            if name in here:
                after.latency.copy_row(place, self.latency, here[name])
                after.stale[place] = self.stale[here[name]]
        return after
