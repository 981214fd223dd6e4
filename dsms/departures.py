"""Results that left in a stretch of a run, in columns: whose, when, and since when all that they needed was there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.journal import Journal

FEW = 8  # different values that are looked for one by one before they are sorted
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Spells(NamedTuple):
    """From when to when results were on their way, by query and in the order of their ends."""

    whose: Numbers
    since: Floats
    until: Floats


class Departures(NamedTuple):
    """Columns of equal length, a row for one result or for several alike."""

    whose: Numbers  # the query's place in the plan
    left: Floats
    arrived: Floats
    alike: Numbers

    @classmethod
    def of(cls, journal: Journal) -> Departures:
        """Those of this stretch, each query's in the order they left."""
        whose = np.fromiter(journal.result_query, np.int64, len(journal.result_query))
        left = np.fromiter(journal.result_left, np.float64, len(journal.result_left))
        arrived = np.fromiter(journal.result_arrived, np.float64, len(journal.result_arrived))
        parts = [cls(whose, left, arrived, np.ones(len(left), dtype=np.int64))] if len(left) else []
        if journal.result_runs:
            of, at, since, many = map(np.array, zip(*journal.result_runs, strict=True))
            parts.append(cls(of, at, since, many))
        if journal.result_batches:
            queries, instants, batches = zip(*journal.result_batches, strict=True)
            different, often = zip(*map(_counted, batches), strict=True)
            rows = [len(values) for values in different]
            places, when = np.repeat(queries, rows), np.repeat(instants, rows)
            parts.append(cls(places, when, np.concatenate(different), np.concatenate(often)))
        if not parts:
            return cls(whose, left, arrived, np.ones(0, dtype=np.int64))
        if len(parts) == 1:
            return parts[0]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        in_order = np.argsort(columns[1], kind="stable")  # each part is, all together are not
        return cls(*(column[in_order] for column in columns))

    def spells(self) -> Spells:
        """For how long each query had results on their way: of those that leave at once, the oldest says it."""
        by_query = np.argsort(self.whose, kind="stable")
        whose, left, arrived = self.whose[by_query], self.left[by_query], self.arrived[by_query]
        first = np.flatnonzero((np.diff(whose, prepend=-1) != 0) | (np.diff(left, prepend=np.nan) != 0))
        since = np.minimum.reduceat(arrived, first) if len(first) else arrived
        return Spells(whose[first], since, left[first])


def _counted(values: Floats) -> tuple[Floats, Numbers]:
    """Each value once, and how often it is there: those of one batch came in a few batches, so few are different."""
    found: list[float] = []
    counts: list[int] = []
    for _ in range(FEW):
        other = values != values[0]
        found.append(float(values[0]))
        counts.append(len(values) - int(np.count_nonzero(other)))
        values = values[other]
        if not len(values):
            return np.array(found), np.array(counts)
    rest, often = np.unique(values, return_counts=True)
    return np.concatenate([found, rest]), np.concatenate([counts, often])
