"""The scheduler dashboard: the active policy, decisions and their cost, and the scores of the adaptive policy."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import quantile, rate, select
from grafana.overview import policy_timeline
from grafana.panels import BAD, FAIR, GOOD, PLAIN, SHARE_THRESHOLDS, Target, state_timeline, timeseries

DOMAIN_LEGEND = "domain {{domain}}"
OVERHEAD_THRESHOLDS = ((0.05, FAIR), (0.25, BAD))
DECISION_METRIC = "dsms_scheduler_decision_seconds"

POLICY_ROW = Row("Scheduling policy", 6, (policy_timeline(),))
SELECTOR_ROW = Row(
    "Adaptive policy: selector",
    8,
    (
        state_timeline(
            "Active candidate",
            Target(select("dsms_selector_active"), "{{domain}} · {{policy}}"),
            names=(("", PLAIN), ("active", "blue")),
        ),
        timeseries(
            "Candidate scores", Target(select("dsms_selector_score"), "{{policy}}, domain {{domain}}"), floor=None
        ),
        timeseries(
            "Policy switches",
            Target(f"increase({select('dsms_policy_switches_total')}[1m])", "switches, domain {{domain}}"),
            Target(f"increase({select('dsms_selector_choices_total')}[1m])", "choices, domain {{domain}}"),
            unit="short",
        ),
    ),
)
DECISIONS_ROW = Row(
    "Decisions",
    8,
    (
        timeseries("Decisions per second", Target(rate("dsms_scheduler_decisions_total"), DOMAIN_LEGEND)),
        timeseries(
            "Decision time",
            Target(quantile(0.5, DECISION_METRIC, "domain"), "p50, domain {{domain}}"),
            Target(quantile(0.99, DECISION_METRIC, "domain"), "p99, domain {{domain}}"),
        ),
        timeseries(
            "Idle while work is queued",
            Target(rate("dsms_scheduler_idle_with_work_seconds_total"), DOMAIN_LEGEND),
            limits=OVERHEAD_THRESHOLDS,
            most=1.0,
        ),
    ),
)
TURNS_ROW = Row(
    "Turns",
    8,
    (
        timeseries(
            "Slice time granted and used",
            Target(rate("dsms_slice_granted_seconds_total"), "granted, domain {{domain}}", dashed=True),
            Target(rate("dsms_slice_used_seconds_total"), "used, domain {{domain}}"),
        ),
        timeseries(
            "Utilisation", Target(select("dsms_utilisation_ratio"), DOMAIN_LEGEND), limits=SHARE_THRESHOLDS, most=1.0
        ),
        timeseries("Query weights", Target(select("dsms_query_weight"), "{{query}}")),
    ),
)
STATE_ROW = Row(
    "",
    5,
    (
        state_timeline(
            "Domains paused",
            Target(select("dsms_domain_paused"), DOMAIN_LEGEND),
            names=(("running", GOOD), ("paused", FAIR)),
        ),
        state_timeline(
            "Domains failed", Target(select("dsms_domain_failed"), DOMAIN_LEGEND), names=(("ok", GOOD), ("failed", BAD))
        ),
        state_timeline(
            "Recording",
            Target(select("dsms_recording_failed"), DOMAIN_LEGEND),
            names=(("ok", GOOD), ("stopped", BAD)),
        ),
    ),
)
WATCHDOG_ROW = Row(
    "Watchdog and quarantine",
    6,
    (
        state_timeline(
            "Watchdog: ok / stalled",
            Target(select("dsms_watchdog_stalled"), DOMAIN_LEGEND),
            names=(("ok", GOOD), ("stalled", BAD)),
        ),
        state_timeline(
            "Quarantined queries",
            Target(select("dsms_query_quarantined"), "{{query}}"),
            names=(("running", GOOD), ("quarantined", BAD)),
        ),
        timeseries(
            "Watchdog alerts",
            Target(f"increase({select('dsms_watchdog_alerts_total')}[1m])", DOMAIN_LEGEND),
            unit="short",
        ),
    ),
)

SCHEDULER = Dashboard(
    "dsms-scheduler",
    "dsms / Scheduler and selector",
    "The active policy, decisions and their cost, and how the adaptive policy scores its candidates.",
    (POLICY_ROW, SELECTOR_ROW, DECISIONS_ROW, TURNS_ROW, STATE_ROW, WATCHDOG_ROW),
)
