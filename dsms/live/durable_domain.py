"""A domain that can be snapshotted and restored: it tracks the offset it has applied of every gateway's log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple

from dsms.clock import monotonic_s
from dsms.engine.policy import as_stateful
from dsms.engine.runners.station_state import StationState
from dsms.errors import DsmsError
from dsms.live.domain import Domain
from dsms.live.domain_snapshot import DomainState
from dsms.live.log_batch import LogBatch
from dsms.live.migration import snapshot_state
from dsms.live.query_set import QuerySet
from dsms.policies.adaptive.gatherer import format_policy
from dsms.policies.registry import policy_named

log = logging.getLogger("dsms")


class TimedSnapshot(NamedTuple):
    """A snapshot, and how long turns were paused for it."""

    snapshot: DomainState
    pause: float  # seconds


class DurableDomain(Domain):
    """Applies batches of gateway logs; a snapshot contains all batches before it and none after."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._positions: dict[str, int] = {}

    def position(self, gateway: str) -> int:
        """The last offset of this gateway's log that was applied."""
        return self.ask(lambda: self._positions.get(gateway, 0)).result()

    def apply_log_batch(self, batch: LogBatch) -> float:
        """Apply a batch in one step when there is room; refuse it if it does not follow the last applied offset.

        Answers how many tuples are held then.
        """
        rows = [(stream, what) for stream, what in batch.contents if not isinstance(what, int)]

        def admit() -> float:
            self._check()
            applied = self._positions.get(batch.gateway, 0)
            if applied != batch.after_offset:
                raise DsmsError(
                    f"domain {self.name!r} has applied the log of {batch.gateway!r} up to {applied}: "
                    f"a batch after {batch.after_offset} does not follow"
                )
            for stream, what in batch.contents:
                try:
                    self.engine.advance(stream, what) if isinstance(what, int) else self.engine.push(stream, what)
                except (
                    DsmsError
                ) as error:  # go on: the batch is acknowledged, and its other rows must not be applied twice
                    log.error("domain %s cannot admit rows of stream %r: %s", self.name, stream, error)
            if batch.ends:
                self.engine.end()
            self._positions[batch.gateway] = batch.last_offset
            return self.engine.ledger.held

        def enqueue() -> Future[float]:
            self._check()
            return self._admission.enqueue_atomic(rows, admit)

        return self.ask(enqueue).result().result()

    def reject_waiting(self) -> None:
        """Refuse the batches that wait for room; the gateways will send them again."""
        self.ask(lambda: self._admission.refuse(DsmsError(f"domain {self.name!r} is full"))).result()

    def snapshot(self, keep: Callable[[], object]) -> TimedSnapshot:
        """Take a snapshot between two turns; `keep` copies the operator state at the same moment."""

        def look() -> TimedSnapshot:
            self._check()
            begun = monotonic_s()
            keep()
            engine = self.engine
            taken = DomainState(
                self.query_set,
                snapshot_state(engine),
                format_policy(engine.control.chosen),
                engine.control.qos,
                dict(self._positions),
                self.state == "paused",
                as_stateful(engine.control.chosen).snapshot(),
                engine.statistics.snapshot(),
                self.monitor.snapshot(engine),
                self._quarantine.snapshot(engine),
            )
            return TimedSnapshot(taken, monotonic_s() - begun)

        return self.ask(look).result()

    def restore(
        self, snapshot: DomainState, states: Mapping[str, StationState], stalled_station: str | None = None
    ) -> None:
        """Continue from a snapshot; the domain must have no queries yet.

        The queries of a stalled station are quarantined: it would get the same rows again.
        """
        transfer, policy = replace(snapshot.transfer, states=states), policy_named(snapshot.policy)

        def restore_state(query_set: QuerySet) -> None:
            self._migrate(query_set, transfer)
            engine = self.engine
            engine.statistics.restore(snapshot.statistics)
            engine.control.require(snapshot.qos)
            engine.swap(policy)
            as_stateful(policy).restore(snapshot.policy_state)
            engine.control.rerank()
            self.monitor.restore(snapshot.counters, engine)
            self._quarantine.restore(engine, snapshot.quarantine)
            if stalled_station is not None:
                self._quarantine.quarantine(
                    engine, stalled_station, f"operator {stalled_station!r} did not return, so its process was killed"
                )
            self._positions = dict(snapshot.positions)
            if snapshot.paused:
                self._set_state("running", "paused")

        with self._changing:
            after = self.query_set.merge(snapshot.query_set)
            self.ask(lambda: restore_state(after)).result()
