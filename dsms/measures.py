"""What a run cost and gave, exact in virtual time: memory, turns, results."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dsms.ledger import Ledger
from dsms.observers import Observer
from dsms.plan import Plan, Query
from dsms.runners.base import Step
from dsms.segment import Segment
from dsms.staleness import Staleness

if TYPE_CHECKING:
    from dsms.engine import Engine


class Memory(Observer):
    """How many tuples and bytes the queues held: maximum, and integral over time."""

    trusted = True

    def attach(self, engine: Engine) -> None:
        self._ledger: Ledger = engine.ledger
        self._last = engine.clock.now()
        self.max_tuples: float = 0
        self.max_bytes: float = 0.0
        self.tuples_integral = 0.0
        self.bytes_integral = 0.0

    def elapse(self, now: float) -> None:
        span = now - self._last
        if span > 0:  # what lasts no time was never held
            self._last = now
            held, held_bytes = self._ledger.held, self._ledger.held_bytes
            self.tuples_integral += held * span
            self.bytes_integral += held_bytes * span
            if held > self.max_tuples:
                self.max_tuples = held
            if held_bytes > self.max_bytes:
                self.max_bytes = held_bytes


class Samples(Observer):
    """The tuples held at 0, DT, 2·DT, …: after the arrivals of that instant, before the turn that starts there."""

    trusted = True

    def __init__(self, every: float) -> None:
        self.every = every
        self.taken: list[tuple[float, float]] = []

    def attach(self, engine: Engine) -> None:
        self._ledger = engine.ledger

    def elapse(self, now: float) -> None:
        while (instant := len(self.taken) * self.every) < now:
            self._sample(instant)

    def begin(self, now: float) -> None:
        while (instant := len(self.taken) * self.every) <= now:
            self._sample(instant)

    def _sample(self, instant: float) -> None:
        held = self._ledger.held
        self.taken.append((instant, held if isinstance(held, int) else round(held, 12) + 0.0))  # no -0.0


class Turns(Observer):
    """How often the scheduler chose, how often it chose another segment, and the longest any tuple was left waiting."""

    trusted = True

    def __init__(self) -> None:
        self.count = 0
        self.switches = 0
        self.longest_wait: float = 0.0
        self._last: Segment | None = None

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        self.count += 1
        if segment is not self._last:
            if self._last is not None:
                self.switches += 1
            self._last = segment
        for step in steps:
            wait = start - step[6]
            if wait > self.longest_wait:
                self.longest_wait = wait
            start += step[5]


class Results(Observer):
    """What left: how many, how late, and for how long each query's output was stale."""

    trusted = True

    def __init__(self, plan: Plan) -> None:
        self._fractional = plan.settings.fractional
        self.latencies = array("d")
        self.queries = {id(query): QueryResults(query, plan) for query in plan.queries}

    def attach(self, engine: Engine) -> None:
        self._ledger = engine.ledger

    def results(self, query: Query, now: float, arrivals: Sequence[float]) -> None:
        mine = self.queries[id(query)]
        if isinstance(arrivals, np.ndarray):
            late = now - arrivals
            self.latencies.frombytes(late.astype(np.float64).tobytes())
            mine.latency_sum += float(late.sum())
        else:
            for arrived in arrivals:
                latency = now - arrived
                self.latencies.append(latency)
                mine.latency_sum += latency
        mine.count += len(arrivals)
        # The intervals all end now, so their union is the longest of them.
        mine.staleness.add(arrivals[0] if len(arrivals) == 1 else min(arrivals), now)
        if mine.staleness.gaps and self._ledger.held == 0:
            mine.staleness.gaps.clear()  # nothing is under way that could still make a gap stale

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        if self._fractional:  # results are counted in whole tuples, which only the steps know
            for step in steps:
                if step[9]:
                    self.queries[id(step[0].station.query)].amount += step[3]

    def quantiles(self) -> dict[str, float | None]:
        """Mean, median, 99th percentile and maximum of the latency of all results."""
        if not self.latencies:
            return dict.fromkeys(("mean", "p50", "p99", "max"))
        values = np.frombuffer(self.latencies, dtype=np.float64)
        p50, p99 = np.quantile(values, (0.5, 0.99))
        return {"mean": float(values.mean()), "p50": float(p50), "p99": float(p99), "max": float(values.max())}


class QueryResults:
    """One query's share in the results."""

    __slots__ = ("amount", "count", "latency_sum", "query", "staleness")

    def __init__(self, query: Query, plan: Plan) -> None:
        self.query = query
        self.count = 0
        self.amount = 0.0  # fractional model: how much left, in whole tuples
        self.latency_sum = 0.0
        # On a single path results leave in the order their tuples arrived, and a gap once fresh stays fresh.
        sinks = [station for station in query.stations if station.sink]
        self.staleness = Staleness(ordered=len(sinks) == 1 and all(len(s.inputs) == 1 for s in plan.stations))

    def latency_mean(self) -> float | None:
        return self.latency_sum / self.count if self.count else None


def finite(value: float) -> float | None:
    """A number for JSON: what does not exist is null, never NaN."""
    return value if math.isfinite(value) else None
