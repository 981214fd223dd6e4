"""Who decides, how fast, at what cost, and what the adaptive policy thinks of its candidates."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import chosen, quantile, rate
from grafana.overview import policy_band
from grafana.panels import BAD, FAIR, GOOD, PLAIN, SHARE, Ask, states, timeseries

DOMAIN = "domain {{domain}}"
WASTED = ((0.05, FAIR), (0.25, BAD))
TIMED = "dsms_scheduler_decision_seconds"

CHARGE = Row("Who decides", 6, (policy_band(),))
SELECTOR = Row(
    "The selector of the adaptive policy",
    8,
    (
        states(
            "Candidate that decides",
            Ask(chosen("dsms_selector_active"), "{{domain}} · {{policy}}"),
            names=(("", PLAIN), ("decides", "blue")),
        ),
        timeseries("Scores", Ask(chosen("dsms_selector_score"), "{{policy}}, domain {{domain}}"), floor=None),
        timeseries(
            "Changes",
            Ask(f"increase({chosen('dsms_policy_switches_total')}[1m])", "switches, domain {{domain}}"),
            Ask(f"increase({chosen('dsms_selector_choices_total')}[1m])", "choices, domain {{domain}}"),
            unit="short",
        ),
    ),
)
DECISIONS = Row(
    "Decisions",
    8,
    (
        timeseries("Decisions", Ask(rate("dsms_scheduler_decisions_total"), DOMAIN)),
        timeseries(
            "Time to decide",
            Ask(quantile(0.5, TIMED, "domain"), "p50, domain {{domain}}"),
            Ask(quantile(0.99, TIMED, "domain"), "p99, domain {{domain}}"),
        ),
        timeseries(
            "Idle with work",
            Ask(rate("dsms_scheduler_idle_with_work_seconds_total"), DOMAIN),
            limits=WASTED,
            most=1.0,
        ),
    ),
)
TURNS = Row(
    "Turns",
    8,
    (
        timeseries(
            "Time granted and used",
            Ask(rate("dsms_slice_granted_seconds_total"), "granted, domain {{domain}}", dashed=True),
            Ask(rate("dsms_slice_used_seconds_total"), "used, domain {{domain}}"),
        ),
        timeseries("Busy", Ask(chosen("dsms_utilisation_ratio"), DOMAIN), limits=SHARE, most=1.0),
        timeseries("Weights of queries", Ask(chosen("dsms_query_weight"), "{{query}}")),
    ),
)
STATE = Row(
    "",
    5,
    (
        states("Paused", Ask(chosen("dsms_domain_paused"), DOMAIN), names=(("runs", GOOD), ("paused", FAIR))),
        states("Failed", Ask(chosen("dsms_domain_failed"), DOMAIN), names=(("works", GOOD), ("failed", BAD))),
        states(
            "Recording",
            Ask(chosen("dsms_recording_failed"), DOMAIN),
            names=(("is written", GOOD), ("has stopped", BAD)),
        ),
    ),
)
WATCHDOG = Row(
    "Watchdog and quarantine",
    6,
    (
        states("Gets on", Ask(chosen("dsms_watchdog_stalled"), DOMAIN), names=(("yes", GOOD), ("stalled", BAD))),
        states(
            "Queries at rest",
            Ask(chosen("dsms_query_quarantined"), "{{query}}"),
            names=(("runs", GOOD), ("quarantined", BAD)),
        ),
        timeseries(
            "Alerts of the watchdog",
            Ask(f"increase({chosen('dsms_watchdog_alerts_total')}[1m])", DOMAIN),
            unit="short",
        ),
    ),
)

SCHEDULER = Dashboard(
    "dsms-scheduler",
    "dsms / Scheduler and selector",
    "Who decides, how fast and at what cost, and what the adaptive policy thinks of its candidates.",
    (CHARGE, SELECTOR, DECISIONS, TURNS, STATE, WATCHDOG),
)
