"""The overview dashboard: memory and its lower bound, latency, freshness, and the active policy."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import SYSTEM_MATCHER, quantile, rate, select, total
from grafana.panels import BAD, FAIR, GOOD, PLAIN, SHARE_THRESHOLDS, Target, stat, state_timeline, timeseries

FRESHNESS_THRESHOLDS = ((0.5, FAIR), (0.9, GOOD))  # below 0.5 is bad
LATENCY_THRESHOLDS_S = ((1.0, FAIR), (5.0, BAD))
LATENCY_METRIC = "dsms_tuple_latency_seconds"
QUERY_MATCHERS = (
    f'{SYSTEM_MATCHER},domain=~"$domain",query=~"$query"'  # for recording rules, which are not in the metric table
)
FIRING_ALERTS = 'ALERTS{alertname=~"Dsms.+",alertstate="firing"}'


def policy_timeline() -> dict[str, object]:
    """Which policy was active when."""
    target = Target(select("dsms_policy_active"), "{{domain}} · {{policy}}")
    return state_timeline("Active policy", target, names=(("", PLAIN), ("active", "purple")))


SUMMARY_ROW = Row(
    "",
    4,
    (
        stat("Alerts", Target(f"count({FIRING_ALERTS}) or vector(0)", "firing"), limits=((1, BAD),)),
        stat("Components up", Target(f"avg({select('dsms_part_up')})"), "percentunit", ((1.0, GOOD),), BAD),
        stat("Tuples in memory", Target(total(select("dsms_memory_tuples")), "tuples")),
        stat("Latency p99", Target(quantile(0.99, LATENCY_METRIC)), limits=LATENCY_THRESHOLDS_S),
        stat("Freshness", Target(f"avg({select('dsms_freshness_ratio')})"), limits=FRESHNESS_THRESHOLDS, base=BAD),
        stat("Utilisation", Target(f"avg({select('dsms_utilisation_ratio')})"), limits=SHARE_THRESHOLDS),
    ),
)
MEMORY_ROW = Row(
    "Memory",
    9,
    (
        timeseries(
            "Memory and its lower bound",
            Target(total(select("dsms_memory_tuples"), "domain"), "in memory, domain {{domain}}"),
            Target(total(select("dsms_memory_bound_tuples"), "domain"), "lower bound, domain {{domain}}", dashed=True),
        ),
        timeseries("Memory above the lower bound", Target(select("dsms_memory_gap_tuples"), "domain {{domain}}")),
    ),
)
POLICY_ROW = Row("Scheduling policy", 6, (policy_timeline(),))
RESULTS_ROW = Row(
    "Results",
    9,
    (
        timeseries(
            "Latency p50 and p99",
            Target(quantile(0.5, LATENCY_METRIC), "p50"),
            Target(quantile(0.99, LATENCY_METRIC), "p99"),
            limits=LATENCY_THRESHOLDS_S,
        ),
        timeseries(
            "Freshness", Target(select("dsms_freshness_ratio"), "{{query}}"), limits=FRESHNESS_THRESHOLDS, most=1.0
        ),
    ),
)
QUERIES_ROW = Row(
    "Queries",
    8,
    (
        timeseries(
            "Latency p99 by query, last minute",
            Target(f"query:{LATENCY_METRIC}:p99_1m{{{QUERY_MATCHERS}}}", "{{query}}"),
            unit="s",
            limits=LATENCY_THRESHOLDS_S,
        ),
        timeseries(
            "Share of time stale by query, last minute",
            Target(f"query:dsms_staleness_seconds:share_1m{{{QUERY_MATCHERS}}}", "{{query}}"),
            unit="percentunit",
            most=1.0,
        ),
        timeseries("Results", Target(rate("dsms_result_rows_total"), "{{query}}"), stacked=True),
    ),
)
BYTES_ROW = Row(
    "Memory in bytes and utilisation",
    7,
    (
        timeseries("Queue memory", Target(select("dsms_memory_bytes"), "domain {{domain}}")),
        timeseries(
            "Utilisation",
            Target(select("dsms_utilisation_ratio"), "domain {{domain}}"),
            limits=SHARE_THRESHOLDS,
            most=1.0,
        ),
    ),
)

OVERVIEW = Dashboard(
    "dsms-overview",
    "dsms / Overview",
    "Memory and its lower bound, latency and freshness of results, and the active policy.",
    (SUMMARY_ROW, MEMORY_ROW, POLICY_ROW, RESULTS_ROW, QUERIES_ROW, BYTES_ROW),
)
