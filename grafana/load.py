"""The load dashboard: rows in, limits, rejected rows, results out, checkpoints, components and Ray nodes."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import quantile, rate, select, total
from grafana.panels import BAD, GOOD, Target, stat, state_timeline, timeseries

ANY_THRESHOLDS = ((1e-9, BAD),)  # a single one is an error
PART_LEGEND = "{{part}}"
DOMAIN_LEGEND = "domain {{domain}}"

SUMMARY_ROW = Row(
    "",
    4,
    (
        stat("Rows in per second", Target(total(rate("dsms_ingest_rows_total")))),
        stat("Results out per second", Target(total(rate("dsms_result_rows_total")))),
        stat("Clients", Target(total(select("dsms_ingest_connections")), "connections")),
        stat(
            "Frames rejected, last 5 minutes",
            Target(total(f"increase({select('dsms_ingest_rejected_total')}[5m])")),
            "short",
            ANY_THRESHOLDS,
        ),
    ),
)
INGEST_ROW = Row(
    "Ingest",
    8,
    (
        timeseries(
            "Rows received", Target(total(rate("dsms_ingest_rows_total"), "stream"), "{{stream}}"), stacked=True
        ),
        timeseries("Rows admitted", Target(rate("dsms_stream_rows_total"), "{{stream}}, domain {{domain}}")),
        timeseries("Bytes received", Target(rate("dsms_ingest_bytes_total"), PART_LEGEND), stacked=True),
    ),
)
LIMITS_ROW = Row(
    "Back-pressure and memory limit",
    8,
    (
        state_timeline(
            "Admission by domain",
            Target(select("dsms_ingest_paused"), DOMAIN_LEGEND),
            names=(("open", GOOD), ("blocked", BAD)),
        ),
        state_timeline(
            "Gateways",
            Target(select("dsms_ingest_stopped"), PART_LEGEND),
            names=(("reading", GOOD), ("stopped", BAD)),
        ),
        timeseries("Admission blocked, share of time", Target(rate("dsms_ingest_paused_seconds_total"), DOMAIN_LEGEND)),
        timeseries(
            "Memory and its limit",
            Target(total(select("dsms_queue_bytes"), "domain"), "queues of domain {{domain}}"),
            Target(total(select("dsms_state_bytes"), "domain"), "state of domain {{domain}}"),
            Target(select("dsms_memory_limit_bytes"), "limit of domain {{domain}}"),
        ),
    ),
)
REJECTED_ROW = Row(
    "Rejected and dropped",
    8,
    (
        timeseries("Frames rejected", Target(rate("dsms_ingest_rejected_total"), PART_LEGEND)),
        timeseries("Late rows", Target(rate("dsms_late_rows_total"), "{{operator}}")),
        timeseries("Dead letters", Target(rate("dsms_dead_letters_total"), "{{operator}}")),
        timeseries("Rows shed", Target(rate("dsms_shed_rows_total"), "{{query}}")),
    ),
)
RESULTS_ROW = Row(
    "Results",
    8,
    (
        timeseries("Results out", Target(rate("dsms_result_rows_total"), "{{query}}"), stacked=True),
        timeseries(
            "Latency p50 by query",
            Target(quantile(0.5, "dsms_tuple_latency_seconds", "query"), "{{query}}"),
        ),
        timeseries("Clients connected", Target(select("dsms_ingest_connections"), PART_LEGEND)),
    ),
)
DURABILITY_ROW = Row(
    "Durability",
    8,
    (
        timeseries(
            "Checkpoint pause",
            Target(quantile(0.5, "dsms_checkpoint_pause_seconds", "domain"), "p50, domain {{domain}}"),
            Target(quantile(0.99, "dsms_checkpoint_pause_seconds", "domain"), "p99, domain {{domain}}"),
        ),
        timeseries("Log lag: stored, not yet admitted", Target(select("dsms_log_behind_bytes"), PART_LEGEND)),
        timeseries("Age of the last checkpoint", Target(select("dsms_checkpoint_age_seconds"))),
        timeseries("Size of the last checkpoint", Target(select("dsms_checkpoint_bytes"))),
        timeseries(
            "Checkpoints and recoveries",
            Target(f"increase({select('dsms_checkpoints_total')}[1m])", "checkpoints"),
            Target(f"increase({select('dsms_recoveries_total')}[1m])", "recoveries"),
            unit="short",
        ),
        state_timeline(
            "Last checkpoint: ok / failed",
            Target(select("dsms_checkpoint_failed")),
            names=(("ok", GOOD), ("failed", BAD)),
        ),
    ),
)
COMPONENTS_ROW = Row(
    "Components",
    7,
    (
        state_timeline(
            "Components up", Target(select("dsms_part_up"), PART_LEGEND), names=(("down", BAD), ("up", GOOD))
        ),
        state_timeline(
            "Deployments",
            Target(select("dsms_build_info"), "{{deployment}}, {{version}}"),
            names=(("", BAD), ("running", GOOD)),
        ),
    ),
)
RAY_ROW = Row(
    "Ray",
    8,
    (
        timeseries("Node CPU", Target("ray_node_cpu_utilization / 100", "{{ip}}"), unit="percentunit", most=1.0),
        timeseries("Node memory", Target("ray_node_mem_used", "{{ip}}"), unit="bytes"),
        timeseries(
            "Object store",
            Target("sum by (instance, Location) (ray_object_store_memory)", "{{instance}}, {{Location}}"),
            unit="bytes",
            stacked=True,
        ),
    ),
)

LOAD = Dashboard(
    "dsms-load",
    "dsms / Load and ingest",
    "Rows in, limits, rejected rows, results out, checkpoints, components and Ray nodes.",
    (SUMMARY_ROW, INGEST_ROW, LIMITS_ROW, REJECTED_ROW, RESULTS_ROW, DURABILITY_ROW, COMPONENTS_ROW, RAY_ROW),
)
