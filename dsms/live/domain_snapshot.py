"""The snapshot of a domain between two turns, without the operator state at its hosts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dsms.config.qos import Qos
from dsms.engine.statistics import StatisticsState
from dsms.live.migration import StateTransfer
from dsms.live.monitor.counters import Counters
from dsms.live.quarantine import QuarantineState
from dsms.live.query_set import QuerySet

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


def _select(values: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in values.items() if name in names}
