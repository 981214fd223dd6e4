"""The first page to look at: what is held and what is the least possible, how late and how fresh, and who decides."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import SYSTEM, chosen, quantile, rate, total
from grafana.panels import BAD, FAIR, GOOD, PLAIN, SHARE, Ask, stat, states, timeseries

FRESH = ((0.5, FAIR), (0.9, GOOD))  # below a half is bad
LATE = ((1.0, FAIR), (5.0, BAD))
LATENCY = "dsms_tuple_latency_seconds"
OF_QUERY = f'{SYSTEM},domain=~"$domain",query=~"$query"'  # of recording rules: the table does not have them
FIRING = 'ALERTS{alertname=~"Dsms.+",alertstate="firing"}'


def policy_band() -> dict[str, object]:
    """Who was in charge, when."""
    asked = Ask(chosen("dsms_policy_active"), "{{domain}} · {{policy}}")
    return states("Policy in charge", asked, names=(("", PLAIN), ("in charge", "purple")))


NOW = Row(
    "",
    4,
    (
        stat("Alerts", Ask(f"count({FIRING}) or vector(0)", "firing"), limits=((1, BAD),)),
        stat("Parts that answer", Ask(f"avg({chosen('dsms_part_up')})"), "percentunit", ((1.0, GOOD),), BAD),
        stat("Held", Ask(total(chosen("dsms_memory_tuples")), "tuples")),
        stat("Latency p99", Ask(quantile(0.99, LATENCY)), limits=LATE),
        stat("Fresh", Ask(f"avg({chosen('dsms_freshness_ratio')})"), limits=FRESH, base=BAD),
        stat("Busy", Ask(f"avg({chosen('dsms_utilisation_ratio')})"), limits=SHARE),
    ),
)
MEMORY = Row(
    "Memory",
    9,
    (
        timeseries(
            "Memory and its lower bound",
            Ask(total(chosen("dsms_memory_tuples"), "domain"), "held, domain {{domain}}"),
            Ask(total(chosen("dsms_memory_bound_tuples"), "domain"), "least possible, domain {{domain}}", dashed=True),
        ),
        timeseries("Held beyond the bound", Ask(chosen("dsms_memory_gap_tuples"), "domain {{domain}}")),
    ),
)
DECIDES = Row("Who decides", 6, (policy_band(),))
RESULTS = Row(
    "Results",
    9,
    (
        timeseries(
            "Latency p50 and p99",
            Ask(quantile(0.5, LATENCY), "p50"),
            Ask(quantile(0.99, LATENCY), "p99"),
            limits=LATE,
        ),
        timeseries("Freshness", Ask(chosen("dsms_freshness_ratio"), "{{query}}"), limits=FRESH, most=1.0),
    ),
)
QUERIES = Row(
    "Queries",
    8,
    (
        timeseries(
            "Latency p99 by query, of the last minute",
            Ask(f"query:{LATENCY}:p99_1m{{{OF_QUERY}}}", "{{query}}"),
            unit="s",
            limits=LATE,
        ),
        timeseries(
            "Time behind, of the last minute",
            Ask(f"query:dsms_staleness_seconds:share_1m{{{OF_QUERY}}}", "{{query}}"),
            unit="percentunit",
            most=1.0,
        ),
        timeseries("Results", Ask(rate("dsms_result_rows_total"), "{{query}}"), stacked=True),
    ),
)
BYTES = Row(
    "Bytes",
    7,
    (
        timeseries("Memory of queues", Ask(chosen("dsms_memory_bytes"), "domain {{domain}}")),
        timeseries("Busy", Ask(chosen("dsms_utilisation_ratio"), "domain {{domain}}"), limits=SHARE, most=1.0),
    ),
)

OVERVIEW = Dashboard(
    "dsms-overview",
    "dsms / Overview",
    "What is held and what is the least possible, how late and how fresh results are, and which policy decides.",
    (NOW, MEMORY, DECIDES, RESULTS, QUERIES, BYTES),
)
