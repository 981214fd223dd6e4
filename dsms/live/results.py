"""What left of late, by query: how much, how late, how stale; and the same by phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dsms.departures import Departures
from dsms.journal import Journal
from dsms.live.histogram import BUCKETS, buckets, figures
from dsms.live.phases import Phases
from dsms.live.stale import Stale
from dsms.live.sums import Sums
from dsms.live.tally import Tally
from dsms.observers import Observer
from dsms.plan import Plan
from dsms.policies.base import Policy
from dsms.selection.gatherer import text_of

if TYPE_CHECKING:
    from dsms.engine import Engine


class Results(Observer):
    """Reads the journal once for the last seconds and for the present phase."""

    trusted = True
    engine: Engine  # once it is attached

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.turns = 0
        self.begun = False  # whether anything has been watched yet
        self.phases = Phases()
        self._begin([query.name for query in plan.queries], 0.0)

    def _begin(self, names: list[str], since: float) -> None:
        self.counts = np.zeros(len(names), np.int64)  # from the beginning
        self._latencies = Sums(names, since, BUCKETS)
        self._late = Sums(names, since)  # their latencies added up
        self._stale = Sums(names, since)
        self._known = Stale(self._plan, since)
        self.tally = Tally(names)

    def attach(self, engine: Engine) -> None:
        self.engine = engine
        now = engine.clock.now()
        if not self.begun:
            self._begin(self._stale.names, now)
        self.begun = True
        self.phases.resume(now)

    def read(self, journal: Journal) -> None:
        gone = Departures.of(journal)
        pieces = self._known.pieces(gone.spells())
        self.turns += len(journal.segments)
        self.phases.present.policy = text_of(self.engine.chosen)
        self.phases.read(journal, gone, pieces, self._asked)
        if len(gone.whose):
            latencies = gone.left - gone.arrived
            self.counts += np.bincount(gone.whose, gone.alike, len(self.counts)).astype(np.int64)
            self._latencies.at(gone.left, gone.whose * BUCKETS + buckets(latencies), gone.alike)
            self._late.at(gone.left, gone.whose, latencies * gone.alike)
            self.tally.add(gone, pieces)
            self._stale.over(pieces.since, pieces.until, pieces.whose)
        if self.engine.ledger.held == 0 and not self.engine.undone:
            self._known.forget()

    def swap(self, now: float, before: Policy, after: Policy) -> None:
        if after is not self.engine.chosen:  # a selector lets another one decide
            self.phases.present.choices += 1
        elif after is not before:
            self.engine.fold()
            self.settle(now)
            self.phases.present.policy = text_of(before)
            self.phases.swap(now, text_of(after))

    def settle(self, now: float) -> None:
        """Between two turns, all has been read: nothing has changed since, up to now."""
        self.phases.settle(now, self.engine.ledger.held, self._asked)
        for table in (self._latencies, self._late, self._stale):
            table.advance(now)

    def status(self, now: float, weights: dict[str, float]) -> dict[str, Any]:
        """Of all queries together, and of each."""
        counts, late = self._latencies.totals(), self._late.totals()[:, 0]
        rates = self._latencies.rates(now).sum(axis=1).tolist()
        stale = [share if self._asked else None for share in self._stale.rates(now)[:, 0].tolist()]
        known = [share for share in stale if share is not None]
        return {
            "latency": figures(counts.sum(axis=0), late.sum()),
            "staleness": sum(known) / len(known) if known else None,
            "queries": [
                {
                    "name": name,
                    "weight": weights[name],
                    "results": results,
                    "rate": rate,
                    "latency": figures(mine, total),
                    "staleness": share,
                }
                for name, results, rate, mine, total, share in zip(
                    self._stale.names, self.counts.tolist(), rates, counts, late, stale, strict=True
                )
            ],
        }

    def carried(self, plan: Plan, now: float) -> Results:
        """The same for another plan: what is known of queries that stay goes on, and so do the phases."""
        after = Results(plan)
        names = after._stale.names
        after.engine, after.begun, after.turns, after.phases = self.engine, True, self.turns, self.phases
        after._latencies, after._late = self._latencies.carried(names, now), self._late.carried(names, now)
        after._stale, after._known = self._stale.carried(names, now), self._known.carried(plan, now)
        after.tally = self.tally.carried(names)
        counts = self.counted()
        after.counts[:] = [counts.get(name, 0) for name in names]
        return after

    def counted(self) -> dict[str, int]:
        """By query: how many results have left."""
        return dict(zip(self._stale.names, self.counts.tolist(), strict=True))

    def recall(self, turns: int, counts: Mapping[str, int], tally: Tally, phases: Phases) -> None:
        """Go on with what another has counted."""
        names = self._stale.names
        self.turns, self.tally, self.phases = turns, tally.carried(names), phases
        self.counts[:] = [counts.get(name, 0) for name in names]
        phases.resume(self.engine.clock.now())

    @property
    def _asked(self) -> int:
        """Of how many queries the staleness is known: of pieces of tuples nobody can say what becomes."""
        return 0 if self._plan.settings.fractional else len(self._plan.queries)
