"""Who decides, and by what: the policy in charge, the plan as it cuts it, and all that may be changed while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from dsms.batch import Column
from dsms.clock import Clock
from dsms.errors import DsmsError, PlanError, PolicyError, existing
from dsms.ledger import Ledger, Queue
from dsms.patience import PatientOrder
from dsms.plan import Plan, Station
from dsms.policies.base import Policy
from dsms.qos import DEFAULT, Qos
from dsms.ready import ReadyOrder
from dsms.segment import Segment, Share
from dsms.settings import is_number
from dsms.shedding import SHED, Shedder
from dsms.statistics import Statistics

if TYPE_CHECKING:
    from dsms.engine import Engine

ONE = Share(1, math.inf)


class Helm:
    """The part of an engine that is steered: swapped, weighed, measured and cut anew."""

    _on_swap: Sequence[Callable[..., None]] = ()
    _on_shed: Sequence[Callable[..., None]] = ()
    _ready: ReadyOrder
    granted = ONE  # what the last turn was allowed

    def __init__(self, plan: Plan, statistics: Statistics, ledger: Ledger, clock: Clock) -> None:
        self.plan, self.statistics, self.ledger, self.clock = plan, statistics, ledger, clock
        self.qos = plan.qos or DEFAULT
        self.shedder = Shedder(plan, ledger)
        self.begun = False  # whether anybody decides yet
        self.weights = {query.name: query.weight for query in plan.queries}
        self._shared = plan.settings.buffers == "shared"
        self._watched = plan.settings.max_wait is not None or plan.settings.scheduling_cost > 0

    def start(self, policy: Policy) -> None:
        """Put the first policy in charge."""
        self.chosen = policy  # who was put in charge: the one who decides, or a selector above it
        self._take_over(policy)

    def swap(self, policy: Policy) -> None:
        """Let another policy decide from the next turn on; queues, state and results stay as they are."""
        if not isinstance(policy, Policy):
            raise PolicyError(f"swap to {policy!r}: a Policy is wanted; policy_named('chain') makes one of a name")
        before, active = self.chosen, self.policy
        self._take_over(policy)
        self.chosen = policy
        for leaving in {id(before): before, id(active): active}.values():
            if leaving is not policy:
                leaving.end(self._engine)
        for tell in self._on_swap:
            tell(self.clock.now(), before, policy)

    def let(self, candidate: Policy) -> None:
        """The selector in charge lets this one decide for now."""
        before = self.policy
        if candidate is before:
            return
        self._take_over(candidate)
        before.end(self._engine)
        for tell in self._on_swap:
            tell(self.clock.now(), before, candidate)

    def remeasure(self, stations: Iterable[Station]) -> None:
        """Statistics of these stations have changed: so have the figures and the ranks of their segments."""
        touched = {id(s): s for station in stations for q in self.ledger.inputs[station.index] for s in q.segments}
        for segment in touched.values():
            segment.measure(self.statistics.of, self._shared)
            self._ready.touch(segment)

    def recut(self) -> None:
        """A window of statistics has ended: a policy that cuts the plan by them does so anew."""
        if type(self.policy).cut is Policy.cut:
            return
        fresh, old = self.policy.cut(self.plan, self.statistics), self._ready.segments
        if [segment.stations for segment in fresh] != [segment.stations for segment in old]:
            self._use(self.policy, fresh)
            return
        for segment, like in zip(old, fresh, strict=True):
            if segment.slope != like.slope:
                segment.slope = like.slope
                self._ready.touch(segment)

    def rerank(self) -> None:
        """Something that all priorities depend on has changed."""
        for segment in self._ready.segments:
            self._ready.touch(segment)

    def weigh(self, query: str, weight: float) -> None:
        """Let a query's freshness count so much from now on."""
        if query not in self.weights:
            raise PlanError(f"no query {query!r}{existing(query, self.weights)}", file=self.plan.name)
        if not (is_number(weight) and weight > 0):
            raise DsmsError(f"weight of {query!r} is {weight!r}: a positive number is wanted")
        self.weights[query] = float(weight)
        self._weigh(self._ready.segments)
        self.rerank()

    def give_up(self, queue: Queue, places: Column | None) -> None:
        """Let go, now, of what is at these places of a queue, or of all of it: nothing will come of that."""
        engine, ledger, now = self._engine, self.ledger, self.clock.now()
        engine.elapse(now)
        count, size = engine.runner.shed(queue, places)
        freed, freed_bytes = queue.buffer.release(queue, count, size)
        ledger.held -= freed
        ledger.held_bytes -= freed_bytes if ledger.size is None else 0.0
        engine.runner.left_aside[queue.station.name, SHED] += int(count)
        for tell in self._on_shed:
            tell(now, queue, count, size)

    def require(self, qos: Qos | str) -> None:
        """Let this be what is wanted of the plan from now on; whoever goes by it follows, or refuses what it cannot."""
        wanted = Qos.of(qos)
        if self.begun:
            self.chosen.consider(wanted)
        self.qos = wanted
        if self.begun:
            self.recut()

    def _weigh(self, segments: Sequence[Segment]) -> None:
        largest = max(self.weights.values(), default=1.0)  # counts as 1
        for segment in segments:
            segment.weight = max(self.weights[station.query.name] for station in segment.stations) / largest

    def _take_over(self, policy: Policy) -> None:
        try:
            self._use(policy.begin(self._engine))
        except PolicyError:  # it cannot run this plan: who was in charge stays so
            policy.end(self._engine)
            raise

    def _use(self, policy: Policy, segments: list[Segment] | None = None) -> None:
        segments = segments or policy.cut(self.plan, self.statistics)
        for index, segment in enumerate(segments):
            segment.index = index
            segment.measure(self.statistics.of, self._shared)
            # With fractional tuples `take` is how much one run takes, and a turn is one run.
            segment.take = math.inf if self.plan.settings.fractional else segment.stations[0].operator.take or math.inf
            segment.limit = self._limit(segment)
        covered = {id(station) for segment in segments for station in segment.stations}
        left_out = [station.name for station in self.plan.stations if id(station) not in covered]
        if left_out:
            raise PolicyError(f"policy {policy.name!r} leaves out {left_out}: every operator must be in some segment")
        self._weigh(segments)
        # A policy that has no priority to give is refused here, before anything of the old one is lost.
        kind = PatientOrder if self._watched else ReadyOrder
        order = kind(policy, segments, self.ledger, policy.by_backlog(self.plan))
        if isinstance(order, PatientOrder):
            order.limited = self.plan.settings.max_wait is not None
            if self.begun:
                order.inherit(cast(PatientOrder, self._ready))
        self._ready, self.begun = order, True
        self._served = policy.served if type(policy).served is not Policy.served else None
        self._share = policy.share if policy.shares() else None
        self.policy = policy

    def _limit(self, segment: Segment) -> Share:
        """What a turn may take when the policy does not say."""
        time = self.clock.slice if self.plan.settings.slice is None else self.plan.settings.slice
        if time is not None:
            return Share(segment.take, time)
        return ONE if segment.take == math.inf else Share(segment.take, math.inf)

    @property
    def _engine(self) -> Engine:
        return cast("Engine", self)
