"""Quarantines queries whose operator keeps failing, so that the others go on; `lift` ends a quarantine."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dsms.engine.shedding import dependent_queries, exclusive_stations
from dsms.errors import DsmsError, existing
from dsms.live.monitor.status import QuarantineStatus
from dsms.plan.graph import Plan

if TYPE_CHECKING:
    from dsms.engine.engine import Engine

log = logging.getLogger("dsms")
FAILURE_LIMIT_BATCHES = 8  # in a row of which every row failed


class QuarantineState(NamedTuple):
    """The quarantined queries, for a domain that continues in another process."""

    reasons: Mapping[str, str] = {}  # by query
    failing: Mapping[str, float] = {}  # by failing station: how many batches in a row

    def migrate(self, before: Plan, staying: Collection[str]) -> QuarantineState:
        """The state for another plan: only stations that stay as they are keep their queries in quarantine."""
        failing = {name: times for name, times in self.failing.items() if name in staying}
        queries = dependent_queries(before, failing)
        return QuarantineState({name: reason for name, reason in self.reasons.items() if name in queries}, failing)


class Quarantine:
    """The quarantined queries of a domain, and why; only the domain's thread calls it."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._reasons: dict[str, str] = {}  # by query
        self._seen: set[str] = set()  # failing stations that were handled

    def check_failures(self, engine: Engine) -> None:
        """Quarantine the queries whose operators have reached the failure limit."""
        failing = {
            name for name, times in engine.runner.consecutive_failures.items() if times >= FAILURE_LIMIT_BATCHES
        } - self._seen
        for station in sorted(failing):
            what = f"failed on every row of {FAILURE_LIMIT_BATCHES} batches in a row"
            if math.isinf(engine.runner.consecutive_failures[station]):
                what = "failed halfway through a batch, so its state may be wrong"
            reason = engine.runner.reasons.get((station, "error"), "")
            self.quarantine(engine, station, f"operator {station!r} {what}: {reason}")

    def quarantine(self, engine: Engine, station: str, reason: str) -> None:
        """Quarantine all queries that need this operator."""
        queries = dependent_queries(engine.plan, [station])
        log.error("domain %s: queries %s are quarantined: %s", self._domain, queries, reason)
        self._seen.add(station)
        self._reasons = dict.fromkeys(queries, reason) | self._reasons
        self.reapply(engine)

    def lift(self, engine: Engine, query: str) -> list[str]:
        """End the quarantine of a query and of all with the same reason; answers which. Doubtful state is dropped."""
        if query not in self._reasons:
            raise DsmsError(f"query {query!r} is not in quarantine{existing(query, self._reasons)}")
        lifted = [name for name, reason in self._reasons.items() if reason == self._reasons[query]]
        stations = exclusive_stations(engine.plan, lifted)
        is_doubtful = any(math.isinf(engine.runner.consecutive_failures.get(station.name, 0)) for station in stations)
        engine.row_runner.reset_operator(
            [s for s in stations if is_doubtful or s.name in engine.runner.consecutive_failures], is_doubtful
        )
        self._seen -= {station.name for station in stations}
        self._reasons = {name: reason for name, reason in self._reasons.items() if name not in lifted}
        self.reapply(engine)
        return lifted

    def snapshot(self, engine: Engine) -> QuarantineState:
        """Copy the present state."""
        return QuarantineState(
            dict(self._reasons), {name: engine.runner.consecutive_failures.get(name, 0) for name in self._seen}
        )

    def restore(self, engine: Engine, state: QuarantineState) -> None:
        """Quarantine what was quarantined in another process."""
        self._reasons, self._seen = dict(state.reasons), set(state.failing)
        engine.runner.consecutive_failures.update((name, times) for name, times in state.failing.items() if times)
        self.reapply(engine)

    def reapply(self, engine: Engine) -> None:
        """Make this engine, which may be a new one, drop all rows of the quarantined queries."""
        existing_queries = {query.name for query in engine.plan.queries}
        self._reasons = {query: reason for query, reason in self._reasons.items() if query in existing_queries}
        engine.shedder.quarantine(self._reasons)

    def status(self) -> list[QuarantineStatus]:
        """The quarantined queries, and why."""
        return [QuarantineStatus(query, reason) for query, reason in self._reasons.items()]
