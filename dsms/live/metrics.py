"""A domain's metrics as plain data, taken between two turns: by name, the samples with their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dsms.clock import stopwatch
from dsms.live.times import BLOCKED, IDLE, RUNNABLE
from dsms.policies.adaptive import Adaptive

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.live.watch import Watch

Histogram = tuple[list[int], float]  # how many in each bucket, the last one without end; and the sum of all
Value = float | Histogram
Samples = dict[str, list[tuple[tuple[str, ...], Value]]]  # by metric: the values of its labels, and its own
STATE = 5.0  # seconds for which the size of operators' state is good: to look at it takes a while


class Metrics:
    """Puts together what others have counted; of its own it knows only how large operators' state was of late."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._state: Mapping[str, float] = {}
        self._looked = -math.inf

    def samples(self, watch: Watch, engine: Engine, works: bool = True) -> Samples:
        """All of a domain's but what becomes of it from outside; of one that does not work any more, what is known."""
        status, found = watch.status(engine), Samples()
        self._whole(found, watch, status)
        self._decisions(found, watch, engine, status)
        self._queries(found, watch, status)
        if works:
            self._look(engine)
        self._operators(found, watch, engine, status)
        for stream in status["streams"]:
            self._add(found, "dsms_stream_rows_total", stream["rows"], stream["name"])
        return found

    def standing(self, state: str, recorded: Mapping[str, Any] | None) -> Samples:
        """Whether it is paused or has failed, and whether it is still being recorded."""
        found = Samples()
        self._add(found, "dsms_domain_paused", float(state == "paused"))
        self._add(found, "dsms_domain_failed", float(state == "failed"))
        if recorded is not None:
            self._add(found, "dsms_recording_failed", float(recorded["error"] is not None))
        return found

    def _add(self, found: Samples, metric: str, value: Value | None, *labels: str) -> None:
        if value is not None:
            found.setdefault(metric, []).append(((self._domain, *labels), value))

    def _whole(self, found: Samples, watch: Watch, status: Mapping[str, Any]) -> None:
        held, bound = status["held"], watch.bound.tuples
        self._add(found, "dsms_memory_tuples", held)
        self._add(found, "dsms_memory_bytes", status["held_bytes"])
        if bound is not None:  # what is measured may come out too high
            self._add(found, "dsms_memory_bound_tuples", min(bound, held))
            self._add(found, "dsms_memory_gap_tuples", max(0.0, held - bound))
        self._add(found, "dsms_utilisation_ratio", status["utilisation"])
        self._add(found, "dsms_scheduler_idle_with_work_seconds_total", watch.times.idle_with_work)
        self._add(found, "dsms_slice_granted_seconds_total", watch.times.granted)
        self._add(found, "dsms_slice_used_seconds_total", watch.times.used)

    def _decisions(self, found: Samples, watch: Watch, engine: Engine, status: Mapping[str, Any]) -> None:
        decided = watch.decided
        self._add(found, "dsms_scheduler_decisions_total", status["turns"])
        self._add(found, "dsms_scheduler_decision_seconds", (list(decided.counts), decided.seconds))
        policies = dict.fromkeys([*(phase["policy"] for phase in status["phases"]), status["policy"]])
        for policy in filter(None, policies):
            self._add(found, "dsms_policy_active", float(policy == status["policy"]), policy)
        self._add(found, "dsms_policy_switches_total", status["swaps"])
        self._add(found, "dsms_selector_choices_total", decided.choices)
        chosen = engine.chosen
        if isinstance(chosen, Adaptive) and chosen.selector is not None:
            for name, score in chosen.selector.scores.items():
                self._add(found, "dsms_selector_score", score, name)
                self._add(found, "dsms_selector_active", float(name == chosen.selector.active), name)

    def _queries(self, found: Samples, watch: Watch, status: Mapping[str, Any]) -> None:
        tally = watch.tally
        for place, query in enumerate(status["queries"]):
            name, behind = query["name"], query["staleness"]
            late = tally.counts[place].tolist(), float(tally.sums[place])
            self._add(found, "dsms_result_rows_total", query["results"], name)
            self._add(found, "dsms_tuple_latency_seconds", late, name)
            self._add(found, "dsms_query_weight", query["weight"], name)
            if behind is not None:
                self._add(found, "dsms_freshness_ratio", max(0.0, 1 - behind), name)
                self._add(found, "dsms_staleness_seconds_total", float(tally.stale[place]), name)

    def _operators(self, found: Samples, watch: Watch, engine: Engine, status: Mapping[str, Any]) -> None:
        times, aside = watch.times, engine.runner.left_aside
        for station, told in zip(engine.plan.stations, status["stations"], strict=True):
            name, account = station.name, times.accounts[station.name]
            values: dict[str, Value | None] = {
                "dsms_queue_tuples": told["queue"],
                "dsms_queue_bytes": times.queue_bytes(station.index),
                "dsms_state_bytes": self._state.get(name, 0.0),
                "dsms_operator_running_seconds_total": account.running,
                "dsms_operator_runnable_seconds_total": max(0.0, account.spent[RUNNABLE]),
                "dsms_operator_blocked_seconds_total": max(0.0, account.spent[BLOCKED]),
                "dsms_operator_idle_seconds_total": max(0.0, account.spent[IDLE]),
                "dsms_operator_taken_tuples_total": account.taken,
                "dsms_operator_made_tuples_total": account.made,
                "dsms_queue_wait_seconds": (list(account.waits), account.wait_sum),
                "dsms_operator_selectivity": told["selectivity"],
                "dsms_operator_cost_seconds": told["cost"],
                "dsms_operator_priority": told["priority"],
                "dsms_late_rows_total": aside[name, "late"],
                "dsms_dead_letters_total": aside[name, "error"],
            }
            for metric, value in values.items():
                self._add(found, metric, value, name)
            kind = type(station.operator).__name__.lower()
            self._add(found, "dsms_operator_info", 1.0, name, station.query.name, kind, "")

    def _look(self, engine: Engine) -> None:
        """Ask, now and then, for the bytes that operators keep."""
        if stopwatch() - self._looked > STATE:
            self._state, self._looked = engine.runner.state_bytes(), stopwatch()
