"""Completions: results that left in a part of a run, in columns: query, instant, arrival of their input."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.data.journal import Journal

MAX_LINEAR_VALUES = 8  # distinct values to search one by one before sorting
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class StaleIntervals(NamedTuple):
    """Intervals in which results were pending, by query, in the order of their ends."""

    query_index: Numbers
    since: Floats
    until: Floats


class Completions(NamedTuple):
    """Columns of equal length; a row is one result or several equal ones."""

    query_index: Numbers  # index in the plan
    left: Floats
    arrived: Floats
    alike: Numbers

    @classmethod
    def of(cls, journal: Journal) -> Completions:
        """Return the completions in this part of the journal, each query's in the order they left."""
        query_index = np.fromiter(journal.result_query, np.int64, len(journal.result_query))
        left = np.fromiter(journal.result_left, np.float64, len(journal.result_left))
        arrived = np.fromiter(journal.result_arrived, np.float64, len(journal.result_arrived))
        parts = [cls(query_index, left, arrived, np.ones(len(left), dtype=np.int64))] if len(left) else []
        if journal.result_runs:
            of, at, since, many = map(np.array, zip(*journal.result_runs, strict=True))
            parts.append(cls(of, at, since, many))
        if journal.result_batches:
            queries, instants, batches = zip(*journal.result_batches, strict=True)
            different, often = zip(*map(_count_values, batches), strict=True)
            rows = [len(values) for values in different]
            places, when = np.repeat(queries, rows), np.repeat(instants, rows)
            parts.append(cls(places, when, np.concatenate(different), np.concatenate(often)))
        if not parts:
            return cls(query_index, left, arrived, np.ones(0, dtype=np.int64))
        if len(parts) == 1:
            return parts[0]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        in_order = np.argsort(columns[1], kind="stable")  # each part is sorted, the whole is not
        return cls(*(column[in_order] for column in columns))

    def stale_intervals(self) -> StaleIntervals:
        """Return the stale intervals by query; of results that leave at one instant, the oldest counts."""
        by_query = np.argsort(self.query_index, kind="stable")
        query_index, left, arrived = self.query_index[by_query], self.left[by_query], self.arrived[by_query]
        first = np.flatnonzero((np.diff(query_index, prepend=-1) != 0) | (np.diff(left, prepend=np.nan) != 0))
        since = np.minimum.reduceat(arrived, first) if len(first) else arrived
        return StaleIntervals(query_index[first], since, left[first])


def _count_values(values: Floats) -> tuple[Floats, Numbers]:
    """Return the distinct values and their counts; results of one batch have few distinct arrivals."""
    found: list[float] = []
    counts: list[int] = []
    for _ in range(MAX_LINEAR_VALUES):
        other = values != values[0]
        found.append(float(values[0]))
        counts.append(len(values) - int(np.count_nonzero(other)))
        values = values[other]
        if not len(values):
            return np.array(found), np.array(counts)
    rest, often = np.unique(values, return_counts=True)
    return np.concatenate([found, rest]), np.concatenate([counts, often])
