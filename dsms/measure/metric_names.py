"""Lists every metric; the exporter, dashboards, alert rules and the documented table are built from it."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.errors import DsmsError, existing

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
WAIT = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)  # one histogram per operator
PAUSE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
DECISION = (1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 1e-2, 1e-1)

DOMAIN = ("domain",)
OPERATOR = ("domain", "operator")
QUERY = ("domain", "query")
STREAM = ("domain", "stream")
POLICY = ("domain", "policy")
PART = ("part",)


@dataclass(frozen=True)
class Metric:
    """A metric's name, kind, unit, labels and help text."""

    name: str  # as queried; a histogram's without `_bucket`, `_sum` and `_count`
    kind: str
    unit: str  # "": none
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()  # of a histogram: upper edges, without infinity


METRICS = (
    # Memory.
    Metric("dsms_queue_tuples", GAUGE, "tuples", OPERATOR, "Tuples that wait for an operator."),
    Metric("dsms_queue_bytes", GAUGE, "bytes", OPERATOR, "Bytes of the tuples that wait for an operator."),
    Metric("dsms_memory_tuples", GAUGE, "tuples", DOMAIN, "Tuples held in all queues, shared ones counted once."),
    Metric("dsms_memory_bytes", GAUGE, "bytes", DOMAIN, "Bytes of the tuples held in all queues."),
    Metric(
        "dsms_memory_bound_tuples",
        GAUGE,
        "tuples",
        DOMAIN,
        "The fewest tuples that any scheduler, even one that knows the future, could hold now. The domain simulates "
        "Chain on the same arrivals, with measured costs and selectivities, so the value is an estimate. It is at most "
        "what is held, and too low where paths share a stream or meet.",
    ),
    Metric(
        "dsms_memory_gap_tuples",
        GAUGE,
        "tuples",
        DOMAIN,
        "Tuples held beyond dsms_memory_bound_tuples, never below 0: how far from the optimum the policy is.",
    ),
    Metric("dsms_memory_limit_bytes", GAUGE, "bytes", DOMAIN, "Bytes in queues and state at which ingest stops."),
    Metric("dsms_state_bytes", GAUGE, "bytes", OPERATOR, "Bytes of columns that an operator keeps as its state."),
    # Results.
    Metric("dsms_result_rows_total", COUNTER, "rows", QUERY, "Result rows that the query has emitted."),
    Metric(
        "dsms_tuple_latency_seconds",
        HISTOGRAM,
        "seconds",
        QUERY,
        "From when a result's input was due to arrive until the result left; waiting for a window to close counts.",
        LATENCY,
    ),
    Metric(
        "dsms_freshness_ratio",
        GAUGE,
        "ratio",
        QUERY,
        "Share of the last 5 seconds in which no result was pending; a result counts once it has left.",
    ),
    Metric(
        "dsms_staleness_seconds_total",
        COUNTER,
        "seconds",
        QUERY,
        "Time in which results were pending. A result adds its time when it leaves; while none leaves, the sum rests.",
    ),
    Metric("dsms_query_weight", GAUGE, "", QUERY, "Weight of the query in the policy's priorities."),
    Metric(
        "dsms_shed_rows_total",
        COUNTER,
        "rows",
        QUERY,
        "Rows dropped because the query was over its queue limit or in quarantine.",
    ),
    Metric(
        "dsms_query_quarantined",
        GAUGE,
        "",
        QUERY,
        "1 while the query is in quarantine because one of its operators keeps failing.",
    ),
    # Operators: the four times of an operator add up to the elapsed time.
    Metric("dsms_operator_running_seconds_total", COUNTER, "seconds", OPERATOR, "Time in which the operator ran."),
    Metric(
        "dsms_operator_runnable_seconds_total",
        COUNTER,
        "seconds",
        OPERATOR,
        "Time in which the operator had tuples to process, and did not run.",
    ),
    Metric(
        "dsms_operator_blocked_seconds_total",
        COUNTER,
        "seconds",
        OPERATOR,
        "Time in which the operator had tuples, but had to wait for tuples of another input first.",
    ),
    Metric(
        "dsms_operator_idle_seconds_total",
        COUNTER,
        "seconds",
        OPERATOR,
        "Time in which the operator's queues were empty.",
    ),
    Metric(
        "dsms_operator_taken_tuples_total",
        COUNTER,
        "tuples",
        OPERATOR,
        "Tuples that the operator has taken from its queues.",
    ),
    Metric("dsms_operator_made_tuples_total", COUNTER, "tuples", OPERATOR, "Tuples that the operator has emitted."),
    Metric(
        "dsms_queue_wait_seconds",
        HISTOGRAM,
        "seconds",
        OPERATOR,
        "How long the first tuple of a step had waited in the operator's queue; one observation per step.",
        WAIT,
    ),
    Metric(
        "dsms_operator_selectivity",
        GAUGE,
        "ratio",
        OPERATOR,
        "Tuples emitted per tuple taken, in the last 5 seconds; while idle, the scheduler's estimate.",
    ),
    Metric(
        "dsms_operator_cost_seconds",
        GAUGE,
        "seconds",
        OPERATOR,
        "Processing time per tuple, in the last 5 seconds; while idle, the scheduler's estimate.",
    ),
    Metric(
        "dsms_operator_priority",
        GAUGE,
        "",
        OPERATOR,
        "The operator's priority at the policy's last decision; absent while its queues are empty.",
    ),
    Metric(
        "dsms_operator_info",
        GAUGE,
        "",
        ("domain", "operator", "query", "kind", "actor"),
        "Always 1; the labels name the query that owns the operator, its kind, and the actor that hosts it.",
    ),
    Metric(
        "dsms_late_rows_total",
        COUNTER,
        "rows",
        OPERATOR,
        "Rows rejected because they came too late to be sorted by event time.",
    ),
    Metric("dsms_dead_letters_total", COUNTER, "rows", OPERATOR, "Rows rejected because the operator failed on them."),
    # The scheduler.
    Metric(
        "dsms_scheduler_decisions_total",
        COUNTER,
        "decisions",
        DOMAIN,
        "Scheduling decisions: turns that the scheduler has granted.",
    ),
    Metric(
        "dsms_scheduler_decision_seconds",
        HISTOGRAM,
        "seconds",
        DOMAIN,
        "How long the policy took to choose what runs next, for one decision in 16.",
        DECISION,
    ),
    Metric(
        "dsms_scheduler_idle_with_work_seconds_total",
        COUNTER,
        "seconds",
        DOMAIN,
        "Time in which no operator ran although one could have.",
    ),
    Metric(
        "dsms_slice_granted_seconds_total",
        COUNTER,
        "seconds",
        DOMAIN,
        "Time that the scheduler granted to turns: their slice or, without a limit, the time they took.",
    ),
    Metric("dsms_slice_used_seconds_total", COUNTER, "seconds", DOMAIN, "Time that turns took."),
    Metric("dsms_utilisation_ratio", GAUGE, "ratio", DOMAIN, "Share of the last 5 seconds in which an operator ran."),
    Metric(
        "dsms_policy_active",
        GAUGE,
        "",
        POLICY,
        "1 for the active policy, 0 for earlier ones.",
    ),
    Metric("dsms_policy_switches_total", COUNTER, "switches", DOMAIN, "How often another policy took over."),
    Metric(
        "dsms_selector_active",
        GAUGE,
        "",
        POLICY,
        "1 for the candidate that the adaptive policy lets decide, 0 for the others; absent under other policies.",
    ),
    Metric(
        "dsms_selector_score",
        GAUGE,
        "ratio",
        POLICY,
        "How well the candidate met the QoS goal when the selector last scored it, from 0 to 1.",
    ),
    Metric(
        "dsms_selector_choices_total",
        COUNTER,
        "choices",
        DOMAIN,
        "How often the adaptive policy switched to another candidate.",
    ),
    Metric("dsms_domain_paused", GAUGE, "", DOMAIN, "1 while the domain grants no turns because a user paused it."),
    Metric(
        "dsms_watchdog_stalled", GAUGE, "", DOMAIN, "1 while the domain has work but has made no progress for too long."
    ),
    Metric(
        "dsms_watchdog_alerts_total",
        COUNTER,
        "alerts",
        DOMAIN,
        "How often the watchdog found that the domain made no progress.",
    ),
    Metric("dsms_domain_failed", GAUGE, "", DOMAIN, "1 once the domain has stopped because of an error."),
    # Ingest.
    Metric("dsms_stream_rows_total", COUNTER, "rows", STREAM, "Rows of the stream that the domain has admitted."),
    Metric(
        "dsms_ingest_paused", GAUGE, "", DOMAIN, "1 while producers wait because the domain is at its memory limit."
    ),
    Metric(
        "dsms_ingest_paused_seconds_total",
        COUNTER,
        "seconds",
        DOMAIN,
        "Time in which producers waited because the domain was at its memory limit.",
    ),
    Metric("dsms_ingest_rows_total", COUNTER, "rows", ("part", "stream"), "Rows that the gateway has accepted."),
    Metric("dsms_ingest_bytes_total", COUNTER, "bytes", PART, "Bytes that the gateway has received."),
    Metric("dsms_ingest_rejected_total", COUNTER, "frames", PART, "Frames that the gateway has refused."),
    Metric("dsms_ingest_connections", GAUGE, "connections", PART, "Clients connected to the gateway."),
    Metric(
        "dsms_ingest_stopped", GAUGE, "", PART, "1 while the gateway reads nothing because it holds too many bytes."
    ),
    # Durability, if it is on.
    Metric(
        "dsms_checkpoint_pause_seconds",
        HISTOGRAM,
        "seconds",
        DOMAIN,
        "How long turns waited for a checkpoint.",
        PAUSE,
    ),
    Metric(
        "dsms_log_behind_bytes", GAUGE, "bytes", PART, "Bytes of the gateway's log that a domain has not admitted yet."
    ),
    Metric("dsms_checkpoint_age_seconds", GAUGE, "seconds", (), "Time since the last completed checkpoint."),
    Metric("dsms_checkpoint_bytes", GAUGE, "bytes", (), "Size of the last checkpoint."),
    Metric("dsms_checkpoint_failed", GAUGE, "", (), "1 if the last checkpoint or recovery failed, else 0."),
    Metric("dsms_checkpoints_total", COUNTER, "checkpoints", (), "Checkpoints completed."),
    Metric("dsms_recoveries_total", COUNTER, "recoveries", (), "How often the deployment replaced dead processes."),
    # The deployment.
    Metric(
        "dsms_part_up",
        GAUGE,
        "",
        PART,
        "1 if the scheduler, gateway or result hub answered the last scrape in time, else 0.",
    ),
    Metric("dsms_recording_failed", GAUGE, "", DOMAIN, "1 once the recording has stopped; absent if recording is off."),
    Metric(
        "dsms_build_info",
        GAUGE,
        "",
        ("deployment", "version"),
        "Always 1; the labels name the deployment and its version.",
    ),
)

BY_NAME = {metric.name: metric for metric in METRICS}


def by_name(name: str) -> Metric:
    """Return the metric of this name; a histogram's may end with `_bucket`, `_sum` or `_count`."""
    for suffix in ("", "_bucket", "_sum", "_count"):
        found = BY_NAME.get(name.removesuffix(suffix))
        if found is not None and (not suffix or found.kind == HISTOGRAM):
            return found
    raise DsmsError(f"no metric {name!r}{existing(name, BY_NAME)}")


def table() -> str:
    """Return the metrics as a Markdown table."""
    rows = ["| metric | type | unit | labels | meaning |", "|---|---|---|---|---|"]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind} | {metric.unit} | {labels} | {metric.help} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
