"""Every metric there is: exporter, dashboards, alert rules and the README's table all come from this one."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.errors import DsmsError, existing

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
WAIT = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)  # there is one of these an operator
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
    """What is measured: of whom, in what unit, and what it means."""

    name: str  # as it is queried; of a histogram without `_bucket`, `_sum` and `_count`
    kind: str
    unit: str  # "": it is a number without one
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()  # of a histogram: upper edges, without the infinite one


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
        "The least that any scheduler, even one that knows the future, could hold now: Chain on lower envelopes, on "
        "the same arrivals. Live an estimate from measured cost and selectivity, at most what is held; where paths "
        "share a stream or meet, a looser one.",
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
    Metric("dsms_result_rows_total", COUNTER, "rows", QUERY, "Results that have left."),
    Metric(
        "dsms_tuple_latency_seconds",
        HISTOGRAM,
        "seconds",
        QUERY,
        "From when what a result needed was due to arrive until the result left; waiting for a window to close counts.",
        LATENCY,
    ),
    Metric(
        "dsms_freshness_ratio",
        GAUGE,
        "ratio",
        QUERY,
        "Part of the last seconds in which results were not behind; known of a result once it has left.",
    ),
    Metric(
        "dsms_staleness_seconds_total",
        COUNTER,
        "seconds",
        QUERY,
        "Time in which a query's results were behind; counted when they leave, so not while nothing does.",
    ),
    Metric("dsms_query_weight", GAUGE, "", QUERY, "How much a query counts."),
    Metric("dsms_shed_rows_total", COUNTER, "rows", QUERY, "Rows given up: above a query's ceiling, or in quarantine."),
    Metric("dsms_query_quarantined", GAUGE, "", QUERY, "1 while a query rests because an operator always fails."),
    # Operators: the four times of one add up to the time that has passed.
    Metric("dsms_operator_running_seconds_total", COUNTER, "seconds", OPERATOR, "Time in which an operator worked."),
    Metric(
        "dsms_operator_runnable_seconds_total",
        COUNTER,
        "seconds",
        OPERATOR,
        "Time in which an operator had tuples it could have taken, and others worked or nobody did.",
    ),
    Metric(
        "dsms_operator_blocked_seconds_total",
        COUNTER,
        "seconds",
        OPERATOR,
        "Time in which an operator had tuples, and had to wait for some of another input first.",
    ),
    Metric("dsms_operator_idle_seconds_total", COUNTER, "seconds", OPERATOR, "Time in which nothing waited for it."),
    Metric("dsms_operator_taken_tuples_total", COUNTER, "tuples", OPERATOR, "Tuples that an operator has taken in."),
    Metric("dsms_operator_made_tuples_total", COUNTER, "tuples", OPERATOR, "Tuples that an operator has put out."),
    Metric(
        "dsms_queue_wait_seconds",
        HISTOGRAM,
        "seconds",
        OPERATOR,
        "How long the first tuple of a step had waited in the operator's queue; one observation a step.",
        WAIT,
    ),
    Metric("dsms_operator_selectivity", GAUGE, "ratio", OPERATOR, "Tuples put out per tuple taken in, of late."),
    Metric("dsms_operator_cost_seconds", GAUGE, "seconds", OPERATOR, "Time that a tuple takes, of late."),
    Metric(
        "dsms_operator_priority",
        GAUGE,
        "",
        OPERATOR,
        "What the policy made of an operator at the last decision; absent where nothing waits for it.",
    ),
    Metric(
        "dsms_operator_info",
        GAUGE,
        "",
        ("domain", "operator", "query", "kind", "actor"),
        "1; whose an operator is, what it does, and the actor it is at.",
    ),
    Metric("dsms_late_rows_total", COUNTER, "rows", OPERATOR, "Rows that came too late to be put in order."),
    Metric("dsms_dead_letters_total", COUNTER, "rows", OPERATOR, "Rows put aside because an operator failed on them."),
    # The scheduler.
    Metric("dsms_scheduler_decisions_total", COUNTER, "decisions", DOMAIN, "Turns that were granted."),
    Metric(
        "dsms_scheduler_decision_seconds",
        HISTOGRAM,
        "seconds",
        DOMAIN,
        "How long it took to choose who runs next; one decision in 16 is timed.",
        DECISION,
    ),
    Metric(
        "dsms_scheduler_idle_with_work_seconds_total",
        COUNTER,
        "seconds",
        DOMAIN,
        "Time in which nobody worked though something could have been done.",
    ),
    Metric(
        "dsms_slice_granted_seconds_total",
        COUNTER,
        "seconds",
        DOMAIN,
        "Time that turns were granted: their slice, or what they took where none limits them.",
    ),
    Metric("dsms_slice_used_seconds_total", COUNTER, "seconds", DOMAIN, "Time that turns took."),
    Metric("dsms_utilisation_ratio", GAUGE, "ratio", DOMAIN, "Part of the last seconds in which an operator worked."),
    Metric(
        "dsms_policy_active",
        GAUGE,
        "",
        POLICY,
        "1 for the policy that was put in charge, 0 for those that were before it.",
    ),
    Metric("dsms_policy_switches_total", COUNTER, "switches", DOMAIN, "How often another policy was put in charge."),
    Metric(
        "dsms_selector_active",
        GAUGE,
        "",
        POLICY,
        "1 for the candidate that the adaptive policy lets decide, 0 for the others; absent under other policies.",
    ),
    Metric("dsms_selector_score", GAUGE, "ratio", POLICY, "How well a candidate has served the QoS, as last scored."),
    Metric("dsms_selector_choices_total", COUNTER, "choices", DOMAIN, "How often the adaptive one let another decide."),
    Metric("dsms_domain_paused", GAUGE, "", DOMAIN, "1 while no turns are granted because somebody paused the domain."),
    Metric("dsms_watchdog_stalled", GAUGE, "", DOMAIN, "1 while there is work and no progress for too long."),
    Metric("dsms_watchdog_alerts_total", COUNTER, "alerts", DOMAIN, "How often the watchdog has found no progress."),
    Metric("dsms_domain_failed", GAUGE, "", DOMAIN, "1 once a domain has stopped because of an error."),
    # Rows on their way in.
    Metric("dsms_stream_rows_total", COUNTER, "rows", STREAM, "Rows of a stream that a domain has admitted."),
    Metric("dsms_ingest_paused", GAUGE, "", DOMAIN, "1 while rows wait outside because the domain is full."),
    Metric(
        "dsms_ingest_paused_seconds_total",
        COUNTER,
        "seconds",
        DOMAIN,
        "Time in which rows waited outside because the domain was full.",
    ),
    Metric("dsms_ingest_rows_total", COUNTER, "rows", ("part", "stream"), "Rows that a gateway has taken in."),
    Metric("dsms_ingest_bytes_total", COUNTER, "bytes", PART, "Bytes that have come to a gateway."),
    Metric("dsms_ingest_rejected_total", COUNTER, "frames", PART, "Frames that a gateway has refused."),
    Metric("dsms_ingest_connections", GAUGE, "connections", PART, "Clients connected to a gateway."),
    Metric("dsms_ingest_stopped", GAUGE, "", PART, "1 while a gateway reads nothing as it holds too much already."),
    # Durability, where that is wanted.
    Metric(
        "dsms_checkpoint_pause_seconds",
        HISTOGRAM,
        "seconds",
        DOMAIN,
        "How long turns had to wait for a checkpoint.",
        PAUSE,
    ),
    Metric("dsms_log_behind_bytes", GAUGE, "bytes", PART, "Bytes of a gateway's log that a domain has yet to admit."),
    Metric("dsms_checkpoint_age_seconds", GAUGE, "seconds", (), "Time since the last checkpoint was safe."),
    Metric("dsms_checkpoint_bytes", GAUGE, "bytes", (), "Bytes of the last checkpoint."),
    Metric("dsms_checkpoint_failed", GAUGE, "", (), "1 while a checkpoint, or a recovery, could not be done."),
    Metric("dsms_checkpoints_total", COUNTER, "checkpoints", (), "Checkpoints that are or were safe."),
    Metric("dsms_recoveries_total", COUNTER, "recoveries", (), "How often processes that had ended were replaced."),
    # The deployment.
    Metric("dsms_part_up", GAUGE, "", PART, "1 if a scheduler, a gateway or the outlet answered in time, else 0."),
    Metric("dsms_recording_failed", GAUGE, "", DOMAIN, "1 once the recording has stopped; absent if none was wanted."),
    Metric("dsms_build_info", GAUGE, "", ("deployment", "version"), "1; what is deployed."),
)

BY_NAME = {metric.name: metric for metric in METRICS}


def by_name(name: str) -> Metric:
    """The metric of this name, which of a histogram may end with `_bucket`, `_sum` or `_count`."""
    for suffix in ("", "_bucket", "_sum", "_count"):
        found = BY_NAME.get(name.removesuffix(suffix))
        if found is not None and (not suffix or found.kind == HISTOGRAM):
            return found
    raise DsmsError(f"no metric {name!r}{existing(name, BY_NAME)}")


def table() -> str:
    """All of them as the README shows them."""
    rows = ["| metric | type | unit | labels | meaning |", "|---|---|---|---|---|"]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind} | {metric.unit} | {labels} | {metric.help} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
