"""A domain as it stands between two turns: all there is to know of it beside the goods that are with its hosts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dsms.live.counted import Counted
from dsms.live.handover import Inventory
from dsms.live.quarantine import Resting
from dsms.live.roster import Roster
from dsms.qos import Qos
from dsms.statistics import Learnt

T = TypeVar("T")


@dataclass(frozen=True)
class Snapshot:
    """What another process needs, with the goods, to go on from there."""

    roster: Roster
    inventory: Inventory  # without goods
    policy: str  # as people type it
    qos: Qos
    positions: Mapping[str, int]  # by gateway: up to where its log is in here
    paused: bool
    learnt: Any  # by the policy: how candidates were scored, whose turn it is
    statistics: Learnt
    counted: Counted
    resting: Resting

    def fitted(self, roster: Roster, staying: Collection[str]) -> Snapshot:
        """The same for another plan, in which these stations go on as they are."""
        held = self.inventory
        queries = {query.name for query in roster.plan.queries}
        fitted = replace(
            held,
            backlogs={queue: backlog for queue, backlog in held.backlogs.items() if queue[0] in staying},
            estimates=_among(held.estimates, staying),
            deadlines=_among(held.deadlines, staying),
            weights=_among(held.weights, queries),
            results=_among(held.results, queries),
        )
        return replace(self, roster=roster, inventory=fitted, resting=self.resting.fitted(self.roster.plan, staying))


def _among(values: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in values.items() if name in names}
