"""Observes a running engine and reports its status: rates, latency, staleness, policy phases and decisions."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsms.advice.explain import segments_of
from dsms.advice.reasons import finite_or_none
from dsms.engine.observers import Observer
from dsms.engine.shedding import SHED, count_shed_by_query
from dsms.engine.turn_limit import describe_turn
from dsms.live.monitor.counters import Counters
from dsms.live.monitor.decision_log import DecisionLog
from dsms.live.monitor.decision_stats import DecisionStats
from dsms.live.monitor.operator_times import OperatorTimes
from dsms.live.monitor.query_stats import QueryStats
from dsms.live.monitor.rates import Rates
from dsms.live.monitor.result_stats import QueryMonitor
from dsms.live.monitor.status import (
    EngineStatus,
    InputStatus,
    OperatorStatus,
    OverheadStatus,
    PhaseStatus,
    QueryStatus,
    RejectedRowsStatus,
    StreamStatus,
)
from dsms.measure.memory_bound import MemoryBound
from dsms.measure.phases import PolicyPhases
from dsms.measure.turn_overhead import OverheadMeter
from dsms.plan.graph import Plan
from dsms.policies.adaptive.gatherer import format_policy
from dsms.policies.chart_policy import size_per_reader

if TYPE_CHECKING:
    from dsms.engine.engine import Engine


class Monitor:
    """Bundles the observers of one engine; its memory does not grow with time. Call it only between two turns."""

    def __init__(self, plan: Plan) -> None:
        self._rates, self._results, self._decision_log = Rates(plan), QueryMonitor(plan), DecisionLog()
        self.decision_stats, self.times, self.bound = DecisionStats(), OperatorTimes(plan), MemoryBound(plan)
        self._overhead = OverheadMeter()

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The observers to attach to the engine."""
        results, times = self._results, self.times
        return self.decision_stats, self._rates, results, times, self.bound, self._decision_log, self._overhead

    @property
    def phases(self) -> PolicyPhases:
        """The stretches of time under one policy each."""
        return self._results.phases

    @property
    def query_stats(self) -> QueryStats:
        """Latency and staleness of each query since the start."""
        return self._results.query_stats

    @property
    def turns(self) -> int:
        """How many turns the engine has given."""
        return self._results.turns

    def why(self, count: int = 1) -> list[dict[str, Any]]:
        """The last sampled decisions, the newest first."""
        return self._decision_log.last(count)

    def migrate(self, plan: Plan) -> Monitor:
        """The monitor of the next engine, which runs another plan under the same policy and clock.

        It keeps the figures of queries, stations and streams in both plans, the phases and the decisions.
        """
        if not self._results.begun:
            return Monitor(plan)
        now = self._settle(self._results.engine)
        after = Monitor(plan)
        after._rates, after._results = self._rates.migrate(plan, now), self._results.migrate(plan, now)
        after._decision_log, after.decision_stats = self._decision_log, self.decision_stats
        after._overhead = self._overhead
        after.times, after.bound = self.times.migrate(plan), self.bound.migrate(plan)
        return after

    def snapshot(self, engine: Engine) -> Counters:
        """Copy all counters as they are now."""
        self._settle(engine)
        results, runner = self._results, engine.runner
        return Counters(
            dict(self._rates.rows),
            results.result_counts(),
            results.query_stats.migrate(results.query_stats.names),
            results.turns,
            copy.deepcopy(results.phases),
            dict(runner.rejected_rows),
            dict(runner.reasons),
        )

    def restore(self, state: Counters, engine: Engine) -> None:
        """Continue the counters of another process; those of removed streams, queries and stations are dropped."""
        self._settle(engine)
        stations = {station.name for station in engine.plan.stations}
        self._rates.rows.update((name, rows) for name, rows in state.rows.items() if name in self._rates.rows)
        self._results.restore(state.turns, state.results, state.query_stats, state.phases)
        engine.runner.rejected_rows.update(
            {key: rows for key, rows in state.rejected_rows.items() if key[0] in stations}
        )
        engine.runner.reasons.update({key: reason for key, reason in state.reasons.items() if key[0] in stations})

    def status(self, engine: Engine) -> EngineStatus:
        """The engine's present figures."""
        now = self._settle(engine)
        ledger = engine.ledger
        utilisation, idle = self._rates.shares(now)
        queries = self._queries(engine, now)
        known = [query.staleness for query in queries if query.staleness is not None]
        return EngineStatus(
            policy=format_policy(engine.control.chosen),
            decides=engine.control.policy.name,
            turn=describe_turn(engine.control.policy, engine.plan.settings, engine.clock),
            qos=str(engine.control.qos),
            now=now,
            held=ledger.held,
            bound=self._memory_bound(ledger.held),
            held_bytes=ledger.held_bytes if ledger.size is None else ledger.held * ledger.size,
            turns=self._results.turns,
            swaps=self.phases.swaps,
            utilisation=utilisation,
            idle_with_work=idle,
            overhead=OverheadStatus(**self._overhead.overhead()._asdict()),
            latency=self._results.latency(),
            staleness=sum(known) / len(known) if known else None,
            queries=queries,
            rejected=_count_rejected_rows(engine),
            streams=self._streams(now),
            stations=self._operators(engine, now),
            phases=[PhaseStatus(**phase) for phase in self.phases.to_json()],
        )

    def _queries(self, engine: Engine, now: float) -> list[QueryStatus]:
        shed, quarantined = count_shed_by_query(engine), engine.shedder.quarantined
        return [
            replace(query, shed=shed[query.name], quarantined=query.name in quarantined)
            for query in self._results.queries(now, engine.control.weights)
        ]

    def _settle(self, engine: Engine) -> float:
        """Bring all observers up to the present instant, and answer it."""
        engine.fold()
        now = engine.clock.now()
        self._rates.accrue_to(now)
        self._results.accrue_to(now)
        self.times.accrue_to(now)
        self.bound.advance(now)
        return now

    def _memory_bound(self, held: float) -> float | None:
        """The least that any scheduler would hold now; an estimate above what is held is cut to that."""
        least = self.bound.tuples
        return None if least is None else min(least, held)

    def _streams(self, now: float) -> list[StreamStatus]:
        return [StreamStatus(name, rows, self._rates.stream(name, now)) for name, rows in self._rates.rows.items()]

    def _operators(self, engine: Engine, now: float) -> list[OperatorStatus]:
        priorities, work_by_station = _read_priorities(engine), self._rates.stations(now)
        operators = []
        for station in engine.plan.stations:
            estimate = engine.statistics.of(station)  # used while the station has done nothing recently
            taken, made, busy, watched = work_by_station[station.name]
            operators.append(
                OperatorStatus(
                    name=station.name,
                    query=station.query.name,
                    inputs=[InputStatus(read.name, size_per_reader(read, engine.plan)) for read in station.inputs],
                    sink=station.sink,
                    queue=sum(queue.count for queue in engine.ledger.inputs[station.index]),
                    rate_in=taken / watched if watched > 0 else 0.0,
                    rate_out=made / watched if watched > 0 else 0.0,
                    cost=busy * engine.clock.budget / taken if taken else estimate.cost,
                    selectivity=made / taken if taken else estimate.selectivity,
                    busy=min(1.0, busy / watched) if watched > 0 else 0.0,
                    priority=finite_or_none(priorities.get(station.index)),
                )
            )
        return operators


def _count_rejected_rows(engine: Engine) -> list[RejectedRowsStatus]:
    """Rows that operators rejected, with the reason of the first; rows shed under load are not among them."""
    runner = engine.runner
    return [
        RejectedRowsStatus(name, kind, rows, runner.reasons.get((name, kind), ""))
        for (name, kind), rows in runner.rejected_rows.items()
        if kind != SHED
    ]


def _read_priorities(engine: Engine) -> dict[int, float]:
    """The highest priority of a station's segments at the last decision, for segments that still have work."""
    found: dict[int, float] = {}
    for segment in segments_of(engine.ledger):
        if segment.ranked is not None and any(queue.count for queue in segment.queues):
            for station in segment.stations:
                found[station.index] = max(found.get(station.index, -segment.key), -segment.key)
    return found
