"""Observers that measure a simulated run exactly: memory, turns, results."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dsms.data.journal import Journal
from dsms.engine.engine import Engine
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.measure.completions import Completions
from dsms.measure.staleness import Staleness
from dsms.plan.graph import Plan, Query
from dsms.plan.segment import Segment


class MemoryMeasure(Observer):
    """Tuples and bytes in the queues: maximum, and integral over time."""

    trusted = True

    def __init__(self) -> None:
        self._last = 0.0
        self.max_tuples = 0.0
        self.max_bytes = 0.0
        self.tuples_integral = 0.0
        self.bytes_integral = 0.0

    def attach(self, engine: Engine) -> None:
        self._last = engine.clock.now()
        self._size = engine.ledger.size

    def read(self, journal: Journal) -> None:
        if not journal.instants:
            return
        spans = np.diff(_column(journal.instants), prepend=self._last)
        self._last = journal.instants[-1]
        tuples = _column(journal.held)
        held_bytes = _column(journal.held_bytes) if self._size is None else tuples * self._size
        lasting = spans > 0  # a span of no length holds nothing
        self.tuples_integral += float((tuples * spans).sum())
        self.bytes_integral += float((held_bytes * spans).sum())
        self.max_tuples = max(self.max_tuples, float(tuples[lasting].max(initial=0.0)))
        self.max_bytes = max(self.max_bytes, float(held_bytes[lasting].max(initial=0.0)))


class MemorySamples(Observer):
    """The tuples held at 0, DT, 2·DT, …: after the arrivals of that instant, before the turn that starts at it."""

    trusted = True

    def __init__(self, every: float) -> None:
        self.every = every
        self.taken: list[tuple[float, float]] = []

    def attach(self, engine: Engine) -> None:
        self._ledger = engine.ledger

    def elapse(self, now: float) -> None:
        while (instant := len(self.taken) * self.every) < now:
            self._sample(instant)

    def taking(self, now: float) -> None:
        while (instant := len(self.taken) * self.every) <= now:
            self._sample(instant)

    def _sample(self, instant: float) -> None:
        held = self._ledger.held
        self.taken.append((instant, held if isinstance(held, int) else round(held, 12) + 0.0))  # no -0.0


class TurnMeasure(Observer):
    """Counts turns and changes of segment, and keeps the longest wait of any tuple."""

    trusted = True

    def __init__(self) -> None:
        self.count = 0
        self.switches = 0
        self.longest_wait = 0.0
        self._last: int | None = None

    def read(self, journal: Journal) -> None:
        self.longest_wait = journal.longest_wait
        segments = np.fromiter(journal.segments, np.int64, len(journal.segments))
        if not len(segments):
            return
        before = segments[0] if self._last is None else self._last
        self.switches += int(np.count_nonzero(np.diff(segments, prepend=before)))
        self.count += len(segments)
        self._last = int(segments[-1])


class ResultMeasure(Observer):
    """Counts results and measures their latency and each query's staleness."""

    trusted = True

    def __init__(self, plan: Plan) -> None:
        self.known = True  # False: the run was cut, and the outcomes of queued tuples are unknown
        self.latencies = array("d")  # of a result, or of several equal ones
        self._alike = array("q")
        self.queries = [
            QueryResults(query, mine) for query, mine in zip(plan.queries, is_ordered_by_query(plan), strict=True)
        ]

    def attach(self, engine: Engine) -> None:
        self._engine = engine

    def read(self, journal: Journal) -> None:
        completions = Completions.of(journal)
        self.latencies.frombytes((completions.left - completions.arrived).tobytes())
        self._alike.frombytes(completions.alike.tobytes())
        if len(completions.query_index):
            self._add_by_query(completions)
        if self._engine.ledger.held == 0 and not self._engine.unfinished_steps:  # no pending tuple could fill a gap
            for query in self.queries:
                query.staleness.gaps.clear()

    def _add_by_query(self, completions: Completions) -> None:
        """Add results to their queries, vectorised over hundreds of queries."""
        counts = np.bincount(completions.query_index, completions.alike, len(self.queries)).tolist()
        sums = np.bincount(
            completions.query_index, (completions.left - completions.arrived) * completions.alike, len(self.queries)
        ).tolist()
        query_index, since, until = completions.stale_intervals()
        bounds = np.searchsorted(query_index, np.arange(len(self.queries) + 1)).tolist()
        starts, stops = since.tolist(), until.tolist()
        for query, count, latency, (begin, end) in zip(self.queries, counts, sums, pairwise(bounds), strict=True):
            if end > begin:
                query.add(int(count), latency, starts[begin:end], stops[begin:end])

    def quantiles(self) -> dict[str, float | None]:
        """Return mean, median, 99th percentile and maximum latency of all results."""
        if not self.latencies:
            return dict.fromkeys(("mean", "p50", "p99", "max"))
        values, alike = np.array(self.latencies), np.array(self._alike)
        order = np.argsort(values, kind="stable")
        upto = np.cumsum(alike[order])
        places = np.array((0.5, 0.99)) * (upto[-1] - 1)
        low, high = (values[order[np.searchsorted(upto, ends(places), side="right")]] for ends in (np.floor, np.ceil))
        p50, p99 = low + (high - low) * (places - np.floor(places))
        mean = float((values * alike).sum() / upto[-1])
        return {"mean": mean, "p50": float(p50), "p99": float(p99), "max": float(values.max())}

    @property
    def count(self) -> int:
        """The number of results."""
        return sum(query.count for query in self.queries)


def _column(values: list[float]) -> NDArray[np.float64]:
    return np.fromiter(values, np.float64, len(values))


class QueryResults:
    """The results of one query."""

    def __init__(self, query: Query, ordered: bool) -> None:
        self.query = query
        self.count = 0
        self.latency_sum = 0.0
        self.staleness = Staleness(ordered)

    def add(self, count: int, latency: float, since: Sequence[float], until: Sequence[float]) -> None:
        """Add results, the sum of their latencies, and the intervals in which the output was stale."""
        self.count += count
        self.latency_sum += latency
        self.staleness.add(since, until)

    def latency_mean(self) -> float | None:
        return self.latency_sum / self.count if self.count else None


def is_ordered_by_query(plan: Plan) -> list[bool]:
    """Return, by query, whether results leave in order of arrival, as on a single path."""
    single = all(len(station.inputs) == 1 for station in plan.stations)
    return [single and sum(station.sink for station in query.stations) == 1 for query in plan.queries]


class FractionalOutputs(Observer):
    """Fractional model: sums each query's output in whole tuples, which only the steps contain."""

    trusted = True

    def __init__(self, plan: Plan) -> None:
        self.by_query = {query.name: 0.0 for query in plan.queries}

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for step in steps:
            if len(step.result_arrivals):
                self.by_query[step.queue.station.query.name] += step.made
