"""Measures each query's recent results, latency and staleness, and the same for each policy phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dsms.data.journal import Journal
from dsms.engine.observers import Observer
from dsms.engine.policy import Policy
from dsms.live.monitor.query_stats import QueryStats
from dsms.live.monitor.status import LatencyStatus, QueryStatus
from dsms.measure.completions import Completions
from dsms.measure.histogram import BUCKET_COUNT, find_buckets, summarise
from dsms.measure.phases import PolicyPhases
from dsms.measure.sliding_sums import SlidingSums
from dsms.measure.staleness_tracker import QueryStaleness
from dsms.plan.graph import Plan
from dsms.policies.adaptive.gatherer import format_policy

if TYPE_CHECKING:
    from dsms.engine.engine import Engine


class QueryMonitor(Observer):
    """Reads the engine's journal for the recent window and the present phase."""

    trusted = True
    engine: Engine  # once it is attached

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.turns = 0
        self.begun = False  # whether it was ever attached to an engine
        self.phases = PolicyPhases()
        self._begin([query.name for query in plan.queries], 0.0)

    def _begin(self, names: list[str], since: float) -> None:
        self.counts = np.zeros(len(names), np.int64)  # since the start
        self._latencies = SlidingSums(names, since, BUCKET_COUNT)
        self._late = SlidingSums(names, since)  # sums of latencies
        self._stale = SlidingSums(names, since)
        self._known = QueryStaleness(self._plan, since)
        self.query_stats = QueryStats(names)

    def attach(self, engine: Engine) -> None:
        self.engine = engine
        now = engine.clock.now()
        if not self.begun:
            self._begin(self._stale.names, now)
        self.begun = True
        self.phases.resume(now)

    def read(self, journal: Journal) -> None:
        completions = Completions.of(journal)
        pieces = self._known.pieces(completions.stale_intervals())
        self.turns += len(journal.segments)
        self.phases.present.policy = format_policy(self.engine.control.chosen)
        self.phases.read(journal, completions, pieces, self._known_queries)
        if len(completions.query_index):
            latencies = completions.left - completions.arrived
            self.counts += np.bincount(completions.query_index, completions.alike, len(self.counts)).astype(np.int64)
            self._latencies.at(
                completions.left, completions.query_index * BUCKET_COUNT + find_buckets(latencies), completions.alike
            )
            self._late.at(completions.left, completions.query_index, latencies * completions.alike)
            self.query_stats.add(completions, pieces)
            self._stale.over(pieces.since, pieces.until, pieces.query_index)
        if self.engine.ledger.held == 0 and not self.engine.unfinished_steps:
            self._known.forget()

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        if after is not self.engine.control.chosen:  # a selector has chosen another policy
            self.phases.present.choices += 1
        elif after is not before:
            self.engine.fold()
            self.accrue_to(now)
            self.phases.present.policy = format_policy(before)
            self.phases.swap(now, format_policy(after))

    def accrue_to(self, now: float) -> None:
        """Extend the last known state up to `now`; call it between two turns, when the journal is read."""
        self.phases.accrue_to(now, self.engine.ledger.held, self._known_queries)
        for table in (self._latencies, self._late, self._stale):
            table.advance(now)

    def latency(self) -> LatencyStatus:
        """Latency of the recent results of all queries."""
        return LatencyStatus(**summarise(self._latencies.totals().sum(axis=0), self._late.totals()[:, 0].sum()))

    def queries(self, now: float, weights: Mapping[str, float]) -> list[QueryStatus]:
        """Results, recent rate, latency and staleness of each query."""
        counts, late = self._latencies.totals(), self._late.totals()[:, 0]
        rates = self._latencies.rates(now).sum(axis=1).tolist()
        stale = [share if self._known_queries else None for share in self._stale.rates(now)[:, 0].tolist()]
        return [
            QueryStatus(name, weights[name], results, rate, LatencyStatus(**summarise(own, total)), share)
            for name, results, rate, own, total, share in zip(
                self._stale.names, self.counts.tolist(), rates, counts, late, stale, strict=True
            )
        ]

    def migrate(self, plan: Plan, now: float) -> QueryMonitor:
        """The monitor for another plan; queries in both plans and the phases continue."""
        after = QueryMonitor(plan)
        names = after._stale.names
        after.engine, after.begun, after.turns, after.phases = self.engine, True, self.turns, self.phases
        after._latencies, after._late = self._latencies.migrate(names, now), self._late.migrate(names, now)
        after._stale, after._known = self._stale.migrate(names, now), self._known.migrate(plan, now)
        after.query_stats = self.query_stats.migrate(names)
        counts = self.result_counts()
        after.counts[:] = [counts.get(name, 0) for name in names]
        return after

    def result_counts(self) -> dict[str, int]:
        """How many results each query has put out."""
        return dict(zip(self._stale.names, self.counts.tolist(), strict=True))

    def restore(self, turns: int, counts: Mapping[str, int], query_stats: QueryStats, phases: PolicyPhases) -> None:
        """Continue the counters of another process."""
        names = self._stale.names
        self.turns, self.query_stats, self.phases = turns, query_stats.migrate(names), phases
        self.counts[:] = [counts.get(name, 0) for name in names]
        phases.resume(self.engine.clock.now())

    @property
    def _known_queries(self) -> int:
        """How many queries have a known staleness: none while tuples are split into fractions."""
        return 0 if self._plan.settings.fractional else len(self._plan.queries)
