"""Queries that rest because an operator always fails: others go on, and somebody may let them try again."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dsms.errors import DsmsError, existing
from dsms.plan import Plan
from dsms.shedding import dependents, own_stations

if TYPE_CHECKING:
    from dsms.engine import Engine

log = logging.getLogger("dsms")
FAILURES = 8  # batches in a row of which no row got through


class Resting(NamedTuple):
    """Who rests, for one that goes on in another process."""

    reasons: Mapping[str, str] = {}  # by query
    failing: Mapping[str, float] = {}  # by station that is to blame: how often it has failed in a row

    def fitted(self, before: Plan, staying: Collection[str]) -> Resting:
        """The same for another plan in which these stations go on as they are: others may try again."""
        failing = {name: times for name, times in self.failing.items() if name in staying}
        queries = dependents(before, failing)
        return Resting({name: reason for name, reason in self.reasons.items() if name in queries}, failing)


class Quarantine:
    """Who rests, and why; belongs to the thread of a domain."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._reasons: dict[str, str] = {}  # by query
        self._seen: set[str] = set()  # stations that were found to fail

    def look(self, engine: Engine) -> None:
        """Let the queries rest whose operators have failed on all there was for too long."""
        failing = {name for name, times in engine.runner.barren.items() if times >= FAILURES} - self._seen
        for station in sorted(failing):
            what = f"fails on all rows of {FAILURES} batches in a row"
            if math.isinf(engine.runner.barren[station]):
                what = "has failed half-way, so its state is in doubt"
            said = engine.runner.reasons.get((station, "error"), "")
            self.bar(engine, station, f"operator {station!r} {what}: {said}")

    def bar(self, engine: Engine, station: str, reason: str) -> None:
        """Let the queries rest that need this operator."""
        queries = dependents(engine.plan, [station])
        log.error("domain %s: %s are put into quarantine: %s", self._domain, queries, reason)
        self._seen.add(station)
        self._reasons = dict.fromkeys(queries, reason) | self._reasons
        self.apply(engine)

    def release(self, engine: Engine, query: str) -> list[str]:
        """Let a query, and all that rest for the same reason, try again; answers which. State in doubt is not kept."""
        if query not in self._reasons:
            raise DsmsError(f"query {query!r} is not in quarantine{existing(query, self._reasons)}")
        released = [name for name, reason in self._reasons.items() if reason == self._reasons[query]]
        stations = own_stations(engine.plan, released)
        anew = any(math.isinf(engine.runner.barren.get(station.name, 0)) for station in stations)
        engine.runner.renew([s for s in stations if anew or s.name in engine.runner.barren], anew)
        self._seen -= {station.name for station in stations}
        self._reasons = {name: reason for name, reason in self._reasons.items() if name not in released}
        self.apply(engine)
        return released

    def resting(self, engine: Engine) -> Resting:
        """Who rests, as it is at this instant."""
        return Resting(dict(self._reasons), {name: engine.runner.barren.get(name, 0) for name in self._seen})

    def recall(self, engine: Engine, resting: Resting) -> None:
        """Let those rest that rested in another process."""
        self._reasons, self._seen = dict(resting.reasons), set(resting.failing)
        engine.runner.barren.update((name, times) for name, times in resting.failing.items() if times)
        self.apply(engine)

    def apply(self, engine: Engine) -> None:
        """Have an engine, which may be another than before, give up all that is for them."""
        there = {query.name for query in engine.plan.queries}
        self._reasons = {query: reason for query, reason in self._reasons.items() if query in there}
        engine.shedder.bar(self._reasons)

    def status(self) -> list[dict[str, Any]]:
        """Who rests and why, as plain data."""
        return [{"query": query, "reason": reason} for query, reason in self._reasons.items()]
