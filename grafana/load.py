"""What comes in, what is refused or set aside, what leaves, and the machines below it."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import chosen, quantile, rate, total
from grafana.panels import BAD, GOOD, Ask, stat, states, timeseries

ANY = ((1e-9, BAD),)  # one is too many
PART = "{{part}}"
DOMAIN = "domain {{domain}}"

NOW = Row(
    "",
    4,
    (
        stat("Rows in", Ask(total(rate("dsms_ingest_rows_total")))),
        stat("Results out", Ask(total(rate("dsms_result_rows_total")))),
        stat("Clients", Ask(total(chosen("dsms_ingest_connections")), "connections")),
        stat("Refused", Ask(total(f"increase({chosen('dsms_ingest_rejected_total')}[5m])")), "short", ANY),
    ),
)
INGEST = Row(
    "Ingest",
    8,
    (
        timeseries("Rows taken in", Ask(total(rate("dsms_ingest_rows_total"), "stream"), "{{stream}}"), stacked=True),
        timeseries("Rows admitted", Ask(rate("dsms_stream_rows_total"), "{{stream}}, domain {{domain}}")),
        timeseries("Bytes taken in", Ask(rate("dsms_ingest_bytes_total"), PART), stacked=True),
    ),
)
BOUNDS = Row(
    "At the limit",
    8,
    (
        states(
            "Ingest",
            Ask(chosen("dsms_ingest_paused"), DOMAIN),
            names=(("goes on", GOOD), ("waits", BAD)),
        ),
        states(
            "Gateways",
            Ask(chosen("dsms_ingest_stopped"), PART),
            names=(("read", GOOD), ("do not read", BAD)),
        ),
        timeseries("Share of time that rows had to wait", Ask(rate("dsms_ingest_paused_seconds_total"), DOMAIN)),
        timeseries(
            "Memory and its limit",
            Ask(total(chosen("dsms_queue_bytes"), "domain"), "queues of domain {{domain}}"),
            Ask(total(chosen("dsms_state_bytes"), "domain"), "state of domain {{domain}}"),
            Ask(chosen("dsms_memory_limit_bytes"), "limit of domain {{domain}}"),
        ),
    ),
)
REFUSED = Row(
    "Refused and set aside",
    8,
    (
        timeseries("Frames refused", Ask(rate("dsms_ingest_rejected_total"), PART)),
        timeseries("Rows too late", Ask(rate("dsms_late_rows_total"), "{{operator}}")),
        timeseries("Rows that operators failed on", Ask(rate("dsms_dead_letters_total"), "{{operator}}")),
        timeseries("Rows given up", Ask(rate("dsms_shed_rows_total"), "{{query}}")),
    ),
)
OUT = Row(
    "Results",
    8,
    (
        timeseries("Results out", Ask(rate("dsms_result_rows_total"), "{{query}}"), stacked=True),
        timeseries(
            "Latency by query, p50",
            Ask(quantile(0.5, "dsms_tuple_latency_seconds", "query"), "{{query}}"),
        ),
        timeseries("Clients connected", Ask(chosen("dsms_ingest_connections"), PART)),
    ),
)
SAFETY = Row(
    "Nothing lost",
    8,
    (
        timeseries(
            "Turns wait for a checkpoint",
            Ask(quantile(0.5, "dsms_checkpoint_pause_seconds", "domain"), "p50, domain {{domain}}"),
            Ask(quantile(0.99, "dsms_checkpoint_pause_seconds", "domain"), "p99, domain {{domain}}"),
        ),
        timeseries("Stored and not yet admitted", Ask(chosen("dsms_log_behind_bytes"), PART)),
        timeseries("Age of the last checkpoint", Ask(chosen("dsms_checkpoint_age_seconds"))),
        timeseries("Size of the last checkpoint", Ask(chosen("dsms_checkpoint_bytes"))),
        timeseries(
            "Checkpoints and recoveries",
            Ask(f"increase({chosen('dsms_checkpoints_total')}[1m])", "checkpoints"),
            Ask(f"increase({chosen('dsms_recoveries_total')}[1m])", "recoveries"),
            unit="short",
        ),
        states("Safe", Ask(chosen("dsms_checkpoint_failed")), names=(("yes", GOOD), ("not now", BAD))),
    ),
)
PARTS = Row(
    "Parts of the system",
    7,
    (
        states("Answers", Ask(chosen("dsms_part_up"), PART), names=(("silent", BAD), ("answers", GOOD))),
        states(
            "Deployed",
            Ask(chosen("dsms_build_info"), "{{deployment}}, {{version}}"),
            names=(("", BAD), ("runs", GOOD)),
        ),
    ),
)
RAY = Row(
    "Ray",
    8,
    (
        timeseries("CPU of nodes", Ask("ray_node_cpu_utilization / 100", "{{ip}}"), unit="percentunit", most=1.0),
        timeseries("Memory of nodes", Ask("ray_node_mem_used", "{{ip}}"), unit="bytes"),
        timeseries(
            "Object store",
            Ask("sum by (instance, Location) (ray_object_store_memory)", "{{instance}}, {{Location}}"),
            unit="bytes",
            stacked=True,
        ),
    ),
)

LOAD = Dashboard(
    "dsms-load",
    "dsms / Load and ingest",
    "What comes in, what is refused or set aside, what leaves, and the machines below it.",
    (NOW, INGEST, BOUNDS, REFUSED, OUT, SAFETY, PARTS, RAY),
)
