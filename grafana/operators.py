"""The operators dashboard: how each spends its time, its queues, and the estimates that policies use."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import quantile, rate, select
from grafana.panels import Target, table, timeseries

STATES = ("running", "runnable", "blocked", "idle")
OPERATOR_LEGEND = "{{operator}}"


def _instant(name: str) -> str:
    """A metric's current value for each row of the table: one per domain and operator."""
    return f"max by (domain, operator) ({select(name)})"


TIME_ROW = Row(
    "Time",
    9,
    (
        timeseries(
            "Time by state, mean of the selected operators",
            *(Target(f"avg({rate(f'dsms_operator_{state}_seconds_total')})", state) for state in STATES),
            stacked=True,
            most=1.0,
        ),
        timeseries(
            "Running, share of time", Target(rate("dsms_operator_running_seconds_total"), OPERATOR_LEGEND), stacked=True
        ),
        timeseries(
            "Runnable: waiting for a turn",
            Target(rate("dsms_operator_runnable_seconds_total"), OPERATOR_LEGEND),
            most=1.0,
        ),
    ),
)
OPERATORS_ROW = Row(
    "",
    10,
    (
        table(
            "Operators now",
            (
                ("", f"max by (domain, operator, query, kind, actor) ({select('dsms_operator_info')})", None),
                ("queued", _instant("dsms_queue_tuples"), None),
                ("selectivity", _instant("dsms_operator_selectivity"), "percentunit"),
                ("cost", _instant("dsms_operator_cost_seconds"), "s"),
                ("priority", _instant("dsms_operator_priority"), None),
                ("state", _instant("dsms_state_bytes"), "bytes"),
            ),
            by=("domain", "query", "operator", "kind", "actor"),
        ),
    ),
)
QUEUES_ROW = Row(
    "Queues",
    9,
    (
        timeseries("Queued tuples", Target(select("dsms_queue_tuples"), OPERATOR_LEGEND), stacked=True),
        timeseries("Queued bytes", Target(select("dsms_queue_bytes"), OPERATOR_LEGEND), stacked=True),
        timeseries("Queue wait p99", Target(quantile(0.99, "dsms_queue_wait_seconds", "operator"), OPERATOR_LEGEND)),
    ),
)
ESTIMATES_ROW = Row(
    "Estimates that policies use",
    9,
    (
        timeseries("Selectivity", Target(select("dsms_operator_selectivity"), OPERATOR_LEGEND)),
        timeseries("Cost per tuple", Target(select("dsms_operator_cost_seconds"), OPERATOR_LEGEND)),
        timeseries("Priority", Target(select("dsms_operator_priority"), OPERATOR_LEGEND), floor=None),
    ),
)
THROUGHPUT_ROW = Row(
    "Tuples and state",
    8,
    (
        timeseries("Tuples in", Target(rate("dsms_operator_taken_tuples_total"), OPERATOR_LEGEND)),
        timeseries("Tuples out", Target(rate("dsms_operator_made_tuples_total"), OPERATOR_LEGEND)),
        timeseries("State size", Target(select("dsms_state_bytes"), OPERATOR_LEGEND), stacked=True),
        timeseries(
            "Blocked: waiting for another input",
            Target(rate("dsms_operator_blocked_seconds_total"), OPERATOR_LEGEND),
            most=1.0,
        ),
    ),
)

OPERATORS = Dashboard(
    "dsms-operators",
    "dsms / Operators",
    "How operators spend their time, their queues, and the estimates that policies use.",
    (TIME_ROW, OPERATORS_ROW, QUEUES_ROW, ESTIMATES_ROW, THROUGHPUT_ROW),
)
