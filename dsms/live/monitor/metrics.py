"""Builds a domain's metric samples, with their labels, from its monitor and status between two turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dsms.live.monitor.operator_times import BLOCKED, IDLE, RUNNABLE
from dsms.live.monitor.status import EngineStatus, IngestStatus, RecordingStatus, WatchdogStatus
from dsms.policies.adaptive.adaptive import Adaptive

if TYPE_CHECKING:
    from dsms.engine.engine import Engine
    from dsms.live.monitor.monitor import Monitor

BucketCounts = tuple[list[int], float]  # counts by bucket, the last one unbounded; and the sum of all values
Value = float | BucketCounts
Samples = dict[str, list[tuple[tuple[str, ...], Value]]]  # by metric: label values, and the sample's value


class Metrics:
    """Names and labels what the monitor has counted."""

    def __init__(self, domain: str) -> None:
        self._domain = domain

    def measure(self, monitor: Monitor, engine: Engine, state_bytes: Mapping[str, float]) -> Samples:
        """All samples measured between turns; `state_bytes` is the size of each operator's state."""
        status, samples = monitor.status(engine), Samples()
        self._whole(samples, monitor, status)
        self._decisions(samples, monitor, engine, status)
        self._queries(samples, monitor, status)
        self._operators(samples, monitor, engine, status, state_bytes)
        for stream in status.streams:
            self._add(samples, "dsms_stream_rows_total", stream.rows, stream.name)
        return samples

    def status_samples(
        self,
        state: str,
        recorded: RecordingStatus | None,
        ingest: IngestStatus,
        watchdog: WatchdogStatus,
    ) -> Samples:
        """Samples that are known even while a turn does not return: state, recording, admission and watchdog."""
        samples = Samples()
        self._add(samples, "dsms_ingest_paused", float(ingest.paused))
        self._add(samples, "dsms_ingest_paused_seconds_total", ingest.seconds)
        self._add(samples, "dsms_watchdog_stalled", float(watchdog.alert is not None))
        self._add(samples, "dsms_watchdog_alerts_total", watchdog.alerts)
        self._add(samples, "dsms_memory_limit_bytes", ingest.limits.bytes)
        self._add(samples, "dsms_domain_paused", float(state == "paused"))
        self._add(samples, "dsms_domain_failed", float(state == "failed"))
        if recorded is not None:
            self._add(samples, "dsms_recording_failed", float(recorded.error is not None))
        return samples

    def _add(self, samples: Samples, metric: str, value: Value | None, *labels: str) -> None:
        if value is not None:
            samples.setdefault(metric, []).append(((self._domain, *labels), value))

    def _whole(self, samples: Samples, monitor: Monitor, status: EngineStatus) -> None:
        held, bound = status.held or 0, monitor.bound.tuples
        self._add(samples, "dsms_memory_tuples", held)
        self._add(samples, "dsms_memory_bytes", status.held_bytes)
        if bound is not None:  # an estimate may exceed what is held
            self._add(samples, "dsms_memory_bound_tuples", min(bound, held))
            self._add(samples, "dsms_memory_gap_tuples", max(0.0, held - bound))
        self._add(samples, "dsms_utilisation_ratio", status.utilisation)
        self._add(samples, "dsms_scheduler_idle_with_work_seconds_total", monitor.times.idle_with_work)
        self._add(samples, "dsms_slice_granted_seconds_total", monitor.times.granted)
        self._add(samples, "dsms_slice_used_seconds_total", monitor.times.used)

    def _decisions(self, samples: Samples, monitor: Monitor, engine: Engine, status: EngineStatus) -> None:
        decision_stats = monitor.decision_stats
        self._add(samples, "dsms_scheduler_decisions_total", status.turns)
        self._add(samples, "dsms_scheduler_decision_seconds", decision_stats.seconds.to_sample())
        policies = dict.fromkeys([*(phase.policy for phase in status.phases), status.policy])
        for policy in filter(None, policies):
            self._add(samples, "dsms_policy_active", float(policy == status.policy), policy)
        self._add(samples, "dsms_policy_switches_total", status.swaps)
        self._add(samples, "dsms_selector_choices_total", decision_stats.choices)
        chosen = engine.control.chosen
        if isinstance(chosen, Adaptive) and chosen.selector is not None:
            for name, score in chosen.selector.scores.items():
                self._add(samples, "dsms_selector_score", score, name)
                self._add(samples, "dsms_selector_active", float(name == chosen.selector.active), name)

    def _queries(self, samples: Samples, monitor: Monitor, status: EngineStatus) -> None:
        stats = monitor.query_stats
        for place, query in enumerate(status.queries):
            name = query.name
            self._add(samples, "dsms_result_rows_total", query.results, name)
            self._add(samples, "dsms_tuple_latency_seconds", stats.latency.to_sample(place), name)
            self._add(samples, "dsms_query_weight", query.weight, name)
            self._add(samples, "dsms_shed_rows_total", query.shed, name)
            self._add(samples, "dsms_query_quarantined", float(query.quarantined), name)
            if query.staleness is not None:
                self._add(samples, "dsms_freshness_ratio", max(0.0, 1 - query.staleness), name)
                self._add(samples, "dsms_staleness_seconds_total", float(stats.stale[place]), name)

    def _operators(
        self, samples: Samples, monitor: Monitor, engine: Engine, status: EngineStatus, state_bytes: Mapping[str, float]
    ) -> None:
        times, rejected = monitor.times, engine.runner.rejected_rows
        for station, operator in zip(engine.plan.stations, status.stations, strict=True):
            name, account = station.name, times.accounts[station.name]
            values: dict[str, Value | None] = {
                "dsms_queue_tuples": operator.queue,
                "dsms_queue_bytes": times.queue_bytes(station.index),
                "dsms_state_bytes": state_bytes.get(name, 0.0),
                "dsms_operator_running_seconds_total": account.running,
                "dsms_operator_runnable_seconds_total": max(0.0, account.spent[RUNNABLE]),
                "dsms_operator_blocked_seconds_total": max(0.0, account.spent[BLOCKED]),
                "dsms_operator_idle_seconds_total": max(0.0, account.spent[IDLE]),
                "dsms_operator_taken_tuples_total": account.taken,
                "dsms_operator_made_tuples_total": account.made,
                "dsms_queue_wait_seconds": account.waits.to_sample(),
                "dsms_operator_selectivity": operator.selectivity,
                "dsms_operator_cost_seconds": operator.cost,
                "dsms_operator_priority": operator.priority,
                "dsms_late_rows_total": rejected[name, "late"],
                "dsms_dead_letters_total": rejected[name, "error"],
            }
            for metric, value in values.items():
                self._add(samples, metric, value, name)
            kind = station.operator.kind_name()
            self._add(samples, "dsms_operator_info", 1.0, name, station.query.name, kind, "")
