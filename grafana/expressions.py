"""PromQL for panels: selectors by the labels of a metric, filtered by the dashboard's variables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dsms.errors import DsmsError
from dsms.measure.metric_names import BY_NAME, COUNTER, HISTOGRAM, METRICS, Metric, by_name

SYSTEM_MATCHER = 'instance="$system"'
VARIABLE_LABELS = ("domain", "query", "operator")  # each is filtered by the variable of the same name
RATE_INTERVAL = "$__rate_interval"


def select(name: str) -> str:
    """A metric filtered by the variables: `dsms_queue_tuples{instance="$system",domain=~"$domain",…}`."""
    limits = [SYSTEM_MATCHER, *(f'{label}=~"${label}"' for label in by_name(name).labels if label in VARIABLE_LABELS)]
    return f"{name}{{{','.join(limits)}}}"


def rate(name: str, over: str = RATE_INTERVAL) -> str:
    """The per-second rate of a counter."""
    if by_name(name).kind == "gauge":
        counters = sorted(metric.name for metric in METRICS if metric.kind == COUNTER)
        raise DsmsError(f"{name!r} is a gauge; a rate needs a counter: there are {counters}")
    return f"rate({select(name)}[{over}])"


def quantile(share: float, name: str, *by: str) -> str:
    """A quantile of a histogram, by these labels."""
    if by_name(name).kind != HISTOGRAM:
        raise DsmsError(f"{name!r} is a {by_name(name).kind}, but a quantile needs a histogram")
    return f"histogram_quantile({share}, sum by ({', '.join((*by, 'le'))}) ({rate(f'{name}_bucket')}))"


def total(expression: str, *by: str) -> str:
    """The sum by these labels."""
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"


def find_metrics(expressions: Iterable[str]) -> list[Metric]:
    """The metrics in these expressions, each once, in order; a recording rule counts as the metric it is made of."""
    names = re.findall(r"\bdsms_\w+", " ".join(expressions))
    whole = (
        f"{name}_total" if f"{name}_total" in BY_NAME else name for name in names
    )  # recording rules drop the suffix
    return list(dict.fromkeys(map(by_name, whole)))


def find_variables(text: str) -> set[str]:
    """The dashboard variables that a text uses; Grafana's own begin with two underscores."""
    return {name for name in re.findall(r"\$\{?([a-z]\w*)", text) if not name.startswith("__")}
