"""PromQL for panels: selectors with the labels that a metric has, limited to what the dashboard's variables choose."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dsms.errors import DsmsError
from dsms.metric_names import BY_NAME, COUNTER, HISTOGRAM, METRICS, Metric, by_name

SYSTEM = 'instance="$system"'
CHOICES = ("domain", "query", "operator")  # labels that a variable of the same name chooses
RATE = "$__rate_interval"


def chosen(name: str) -> str:
    """A metric of what is chosen: `dsms_queue_tuples{instance="$system",domain=~"$domain",operator=~"$operator"}`."""
    limits = [SYSTEM, *(f'{label}=~"${label}"' for label in by_name(name).labels if label in CHOICES)]
    return f"{name}{{{','.join(limits)}}}"


def rate(name: str, over: str = RATE) -> str:
    """How fast a counter grows."""
    if by_name(name).kind == "gauge":
        counters = sorted(metric.name for metric in METRICS if metric.kind == COUNTER)
        raise DsmsError(f"{name!r} is a gauge, and rates are of counters; there are {counters}")
    return f"rate({chosen(name)}[{over}])"


def quantile(share: float, name: str, *by: str) -> str:
    """Below which so great a share of a histogram's observations lies, apart by these labels."""
    if by_name(name).kind != HISTOGRAM:
        raise DsmsError(f"{name!r} is a {by_name(name).kind}, and quantiles are of histograms")
    return f"histogram_quantile({share}, sum by ({', '.join((*by, 'le'))}) ({rate(f'{name}_bucket')}))"


def total(expression: str, *by: str) -> str:
    """The sum, apart by these labels."""
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"


def metrics_in(expressions: Iterable[str]) -> list[Metric]:
    """Those of the table that expressions ask for, each once, as they come; recording rules' are what they are of."""
    names = re.findall(r"\bdsms_\w+", " ".join(expressions))
    whole = (f"{name}_total" if f"{name}_total" in BY_NAME else name for name in names)  # recording rules leave it out
    return list(dict.fromkeys(map(by_name, whole)))


def variables_in(text: str) -> set[str]:
    """The dashboard's variables that a text uses; Grafana's own begin with two underscores."""
    return {name for name in re.findall(r"\$\{?([a-z]\w*)", text) if not name.startswith("__")}
