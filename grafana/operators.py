"""Where operators' time goes, what waits for them, and the figures that policies go by."""

from __future__ import annotations

from grafana.dashboard import Dashboard, Row
from grafana.expressions import chosen, quantile, rate
from grafana.panels import Ask, table, timeseries

STATES = ("running", "runnable", "blocked", "idle")
NAME = "{{operator}}"


def _now(name: str) -> str:
    """A metric with no labels but those that lines of the table are told apart by."""
    return f"max by (domain, operator) ({chosen(name)})"


TIME = Row(
    "Time",
    9,
    (
        timeseries(
            "Time split of the operators chosen",
            *(Ask(f"avg({rate(f'dsms_operator_{state}_seconds_total')})", state) for state in STATES),
            stacked=True,
            most=1.0,
        ),
        timeseries("Running", Ask(rate("dsms_operator_running_seconds_total"), NAME), stacked=True),
        timeseries("Runnable: waits for its turn", Ask(rate("dsms_operator_runnable_seconds_total"), NAME), most=1.0),
    ),
)
WHO = Row(
    "",
    10,
    (
        table(
            "Operators now",
            (
                ("", f"max by (domain, operator, query, kind, actor) ({chosen('dsms_operator_info')})", None),
                ("queued", _now("dsms_queue_tuples"), None),
                ("selectivity", _now("dsms_operator_selectivity"), "percentunit"),
                ("cost", _now("dsms_operator_cost_seconds"), "s"),
                ("priority", _now("dsms_operator_priority"), None),
                ("state", _now("dsms_state_bytes"), "bytes"),
            ),
            by=("domain", "query", "operator", "kind", "actor"),
        ),
    ),
)
QUEUES = Row(
    "Queues",
    9,
    (
        timeseries("Queues", Ask(chosen("dsms_queue_tuples"), NAME), stacked=True),
        timeseries("Bytes in queues", Ask(chosen("dsms_queue_bytes"), NAME), stacked=True),
        timeseries("Wait in the queue, p99", Ask(quantile(0.99, "dsms_queue_wait_seconds", "operator"), NAME)),
    ),
)
FIGURES = Row(
    "What policies go by",
    9,
    (
        timeseries("Selectivity", Ask(chosen("dsms_operator_selectivity"), NAME)),
        timeseries("Cost of a tuple", Ask(chosen("dsms_operator_cost_seconds"), NAME)),
        timeseries("Priority", Ask(chosen("dsms_operator_priority"), NAME), floor=None),
    ),
)
FLOW = Row(
    "Tuples and state",
    8,
    (
        timeseries("Taken in", Ask(rate("dsms_operator_taken_tuples_total"), NAME)),
        timeseries("Put out", Ask(rate("dsms_operator_made_tuples_total"), NAME)),
        timeseries("State", Ask(chosen("dsms_state_bytes"), NAME), stacked=True),
        timeseries(
            "Blocked: waits for another input", Ask(rate("dsms_operator_blocked_seconds_total"), NAME), most=1.0
        ),
    ),
)

OPERATORS = Dashboard(
    "dsms-operators",
    "dsms / Operators",
    "Where operators' time goes, what waits for them, and the figures that policies go by.",
    (TIME, WHO, QUEUES, FIGURES, FLOW),
)
