"""Takes and restores the snapshot of a domain between two turns, without the operator state at its hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dsms.clock import monotonic_s
from dsms.config.qos import Qos
from dsms.engine.policy import as_stateful
from dsms.engine.runners.station_state import StationState
from dsms.engine.statistics import StatisticsState
from dsms.live.migration import StateTransfer, snapshot_state
from dsms.live.monitor.counters import Counters
from dsms.live.quarantine import QuarantineState
from dsms.live.query_set import QuerySet
from dsms.policies.adaptive.gatherer import format_policy
from dsms.policies.registry import policy_named

if TYPE_CHECKING:
    from dsms.live.domain import Domain

T = TypeVar("T")


@dataclass(frozen=True)
class DomainState:
    """What another process needs, together with the operator state, to continue the domain."""

    query_set: QuerySet
    transfer: StateTransfer  # without operator state
    policy: str  # as typed by users
    qos: Qos
    positions: Mapping[str, int]  # by gateway: the last applied offset of its log
    paused: bool
    policy_state: Any  # the policy's own snapshot
    statistics: StatisticsState
    counters: Counters
    quarantine: QuarantineState

    def migrate(self, query_set: QuerySet, staying: Collection[str]) -> DomainState:
        """The snapshot for another plan, in which the `staying` stations keep their state."""
        held = self.transfer
        queries = {query.name for query in query_set.plan.queries}
        migrated = replace(
            held,
            backlogs={queue: backlog for queue, backlog in held.backlogs.items() if queue[0] in staying},
            estimates=_select(held.estimates, staying),
            deadlines=_select(held.deadlines, staying),
            weights=_select(held.weights, queries),
            results=_select(held.results, queries),
        )
        return replace(
            self,
            query_set=query_set,
            transfer=migrated,
            quarantine=self.quarantine.migrate(self.query_set.plan, staying),
        )


class TimedSnapshot(NamedTuple):
    """A snapshot, and how long turns were paused for it."""

    snapshot: DomainState
    pause: float  # seconds


def take_snapshot(domain: Domain, copy_states: Callable[[], object]) -> TimedSnapshot:
    """Take a snapshot between two turns; `copy_states` copies the operators' state at the same moment."""
    began = monotonic_s()
    copy_states()
    engine = domain.engine
    taken = DomainState(
        domain.query_set,
        snapshot_state(engine),
        format_policy(engine.control.chosen),
        engine.control.qos,
        domain.positions.snapshot(),
        domain.state == "paused",
        as_stateful(engine.control.chosen).snapshot(),
        engine.statistics.snapshot(),
        domain.monitor.snapshot(engine),
        domain.quarantined.snapshot(engine),
    )
    return TimedSnapshot(taken, monotonic_s() - began)


def restore_snapshot(
    domain: Domain,
    snapshot: DomainState,
    states: Mapping[str, StationState],
    query_set: QuerySet,
    stalled_station: str | None,
) -> None:
    """Continue from a snapshot between two turns; the queries of a stalled station are quarantined."""
    policy = policy_named(snapshot.policy)
    domain.migrate(query_set, replace(snapshot.transfer, states=states))
    engine = domain.engine
    engine.statistics.restore(snapshot.statistics)
    engine.control.require(snapshot.qos)
    engine.swap(policy)
    as_stateful(policy).restore(snapshot.policy_state)
    engine.control.rerank()
    domain.monitor.restore(snapshot.counters, engine)
    domain.quarantined.restore(engine, snapshot.quarantine)
    if stalled_station is not None:
        reason = f"operator {stalled_station!r} did not return, so its process was killed"
        domain.quarantined.quarantine(engine, stalled_station, reason)
    domain.positions.restore(snapshot.positions)
    if snapshot.paused:
        domain.state = "paused"


def _select(values: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in values.items() if name in names}
