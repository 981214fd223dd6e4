"""EngineControl: swaps the policy, re-cuts the plan, and changes weights and QoS of a running engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from dsms.config.fields import is_number
from dsms.config.qos import DEFAULT, Qos
from dsms.engine.policy import Policy, as_stateful, cuts_by_statistics, limits_turns, notes_service
from dsms.engine.ready_order import ReadyOrder
from dsms.engine.starvation import StarvationGuard
from dsms.errors import DsmsError, PlanError, PolicyError, existing
from dsms.plan.graph import Station
from dsms.plan.segment import Segment, Share

if TYPE_CHECKING:
    from dsms.engine.engine import Engine

ONE_TUPLE = Share(1, math.inf)


class EngineControl:
    """Holds the policy in charge of an engine, the ready order it imposes, the weights of queries and the QoS."""

    policy: Policy  # the one that decides
    chosen: Policy  # the one put in charge: the policy that decides, or a selector above it
    ready: ReadyOrder
    on_served: Callable[[Segment], None] | None  # of a policy that keeps account of turns
    share: Callable[[Segment], Share | None] | None  # of a policy that limits turns

    def __init__(self, engine: Engine) -> None:
        plan = engine.plan
        self._engine, self._plan = engine, plan
        self._ledger, self._clock = engine.ledger, engine.clock
        self.qos = plan.qos or DEFAULT
        self.is_started = False  # whether a policy is in charge
        self.weights = {query.name: query.weight for query in plan.queries}
        decision_cost = plan.settings.scheduling_cost + engine.turn_cost
        self.is_guarded = (
            plan.settings.max_wait is not None or decision_cost > 0
        )  # whether waiting is limited, or deciding takes time
        self._shared = plan.settings.buffers == "shared"

    def start(self, policy: Policy) -> None:
        """Put the first policy in charge."""
        self.chosen = policy
        self._take_over(policy)

    def migrate_from(self, before: EngineControl, moved_weights: Mapping[str, float]) -> None:
        """Take over the QoS, and the weights of the queries that remain or moved here."""
        self.qos = before.qos
        kept = {query: weight for query, weight in before.weights.items() if query in self.weights}
        self.weights.update({**moved_weights, **kept})

    def swap(self, policy: Policy) -> None:
        """Put another policy in charge from the next turn on; queues, operator state and results are untouched."""
        if not isinstance(policy, Policy):
            raise PolicyError(f"swap to {policy!r}: expected a Policy; policy_named('chain') makes one from a name")
        before, active = self.chosen, self.policy
        self._take_over(policy)
        self.chosen = policy
        for leaving in {id(before): before, id(active): active}.values():
            if leaving is not policy:
                as_stateful(leaving).end(self._engine)
        self._report_swap(before, policy)

    def activate(self, candidate: Policy) -> None:
        """Let a candidate of the selector in charge decide from the next turn on."""
        before = self.policy
        if candidate is before:
            return
        self._take_over(candidate)
        as_stateful(before).end(self._engine)
        self._report_swap(before, candidate)

    def remeasure(self, stations: Iterable[Station]) -> None:
        """Recompute the figures and ranks of the segments whose stations' statistics have changed."""
        touched = {id(s): s for station in stations for q in self._ledger.inputs[station.index] for s in q.segments}
        for segment in touched.values():
            segment.measure(self._engine.statistics.of, self._shared)
            self.ready.reprioritize(segment)

    def recut(self) -> None:
        """Let a policy that cuts by statistics cut the plan again; called when a statistics window ends."""
        if not cuts_by_statistics(self.policy):
            return
        fresh, old = as_stateful(self.policy).cut(self._plan, self._engine.statistics), self.ready.segments
        if [segment.stations for segment in fresh] != [segment.stations for segment in old]:
            self._use(self.policy, fresh)
            return
        for segment, twin in zip(old, fresh, strict=True):
            if segment.slope != twin.slope:
                segment.slope = twin.slope
                self.ready.reprioritize(segment)

    def rerank(self) -> None:
        """Recompute all priorities."""
        for segment in self.ready.segments:
            self.ready.reprioritize(segment)

    def weigh(self, query: str, weight: float) -> None:
        """Set the weight of a query's freshness."""
        if query not in self.weights:
            raise PlanError(f"no query {query!r}{existing(query, self.weights)}", file=self._plan.name)
        if not (is_number(weight) and weight > 0):
            raise DsmsError(f"weight of {query!r} is {weight!r}: expected a positive number")
        self.weights[query] = float(weight)
        self._weigh(self.ready.segments)
        self.rerank()

    def require(self, qos: Qos | str) -> None:
        """Set the QoS requirements; raises PolicyError if the policy in charge cannot follow them."""
        required = Qos.of(qos)
        if self.is_started:
            as_stateful(self.chosen).check_qos(required)
        self.qos = required
        if self.is_started:
            self.recut()

    def is_choice_forced(self) -> bool:
        """Return whether, after the first segment, the next to run can only be one that reads its outputs."""
        is_shedding = self._engine.shedder.active
        return self.share is None and not (self.is_guarded or is_shedding) and self.ready.is_alone()

    def record_served(self, segment: Segment) -> None:
        """Let the policy note that a segment has had a turn, if it keeps account of turns."""
        if self.on_served is not None:
            self.on_served(segment)

    def _report_swap(self, before: Policy, after: Policy) -> None:
        for tell in self._engine.observers.on_swap:
            tell(self._clock.now(), before, after)

    def _weigh(self, segments: Sequence[Segment]) -> None:
        largest = max(self.weights.values(), default=1.0)  # counts as 1
        for segment in segments:
            segment.weight = max(self.weights[station.query.name] for station in segment.stations) / largest

    def _take_over(self, policy: Policy) -> None:
        try:
            self._use(as_stateful(policy).begin(self._engine))
        except PolicyError:  # it cannot run this plan: the policy in charge stays
            as_stateful(policy).end(self._engine)
            raise

    def _use(self, policy: Policy, segments: list[Segment] | None = None) -> None:
        segments = segments or as_stateful(policy).cut(self._plan, self._engine.statistics)
        for index, segment in enumerate(segments):
            segment.index = index
            segment.measure(self._engine.statistics.of, self._shared)
            # With fractional tuples `take` is how much one run takes, and a turn is one run.
            segment.take = math.inf if self._plan.settings.fractional else segment.stations[0].operator.take or math.inf
            segment.limit = self._limit(segment)
        covered = {id(station) for segment in segments for station in segment.stations}
        missing = [station.name for station in self._plan.stations if id(station) not in covered]
        if missing:
            raise PolicyError(
                f"policy {policy.name!r} leaves out operators {missing}: every operator must be in a segment"
            )
        self._weigh(segments)
        # A policy that fails to give a priority raises here, while the old order is still intact.
        kind = StarvationGuard if self.is_guarded else ReadyOrder
        order = kind(policy, segments, self._ledger, as_stateful(policy).is_dynamic(self._plan))
        if isinstance(order, StarvationGuard):
            order.is_limited = self._plan.settings.max_wait is not None
            if self.is_started:
                order.migrate_from(cast(StarvationGuard, self.ready))
        self.ready, self.is_started = order, True
        self.on_served = as_stateful(policy).on_served if notes_service(policy) else None
        self.share = policy.share if limits_turns(policy) else None
        self.policy = policy

    def _limit(self, segment: Segment) -> Share:
        """Return what a turn may take when the policy sets no share."""
        time = self._clock.slice if self._plan.settings.slice is None else self._plan.settings.slice
        if time is not None:
            return Share(segment.take, time * self._clock.budget)  # in cost, as all that a turn adds up
        return ONE_TUPLE if segment.take == math.inf else Share(segment.take, math.inf)

    def limit_share(self, share: Share | None, segment: Segment) -> Share:
        """Return the policy's share, limited by what the operator takes in a run and by the plan's slice."""
        limit = segment.limit
        if share is None:
            return limit
        time = share.time * self._clock.budget
        if self._plan.settings.slice is not None:
            time = min(time, limit.time)
        return Share(max(1, min(share.tuples, segment.take)), time)
