"""Checks PromQL expressions: which metrics they read, and which labels their results have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import promql_parser as promql
import yaml
from support.paths import ROOT

from dsms.errors import DsmsError
from dsms.measure.metric_names import HISTOGRAM, by_name

RULES = ROOT / "deploy/rules"
SCRAPE_LABELS = {"instance", "job"}  # that Prometheus adds to every series
OTHER_METRICS = {  # metrics of others, with their labels
    "up": set(),
    "ALERTS": {"alertname", "alertstate", "severity"},
    "ray_node_cpu_utilization": {"ip", "SessionName"},
    "ray_node_mem_used": {"ip", "SessionName"},
    "ray_object_store_memory": {"Location", "SessionName"},
}
VARIABLE_VALUES = {"$__rate_interval": "1m", "$__interval": "5s"}


class FaultError(Exception):
    """An expression that can match no series."""


def rules() -> list[dict[str, Any]]:
    """All recording and alerting rules."""
    files = sorted(RULES.glob("*.yml"))
    return [rule for file in files for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


RECORDED = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}


def parse_expression(expression: str) -> Any:
    """The syntax tree of an expression, with Grafana's variables replaced."""
    for variable, value in VARIABLE_VALUES.items():
        expression = expression.replace(variable, value)
    return promql.parse(expression)


def names(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    return {selector.name for selector in _selectors(parse_expression(expression))}


def labels(expression: str) -> set[str]:
    """The labels that the result can have; a FaultError if the expression uses an unknown metric or label."""
    return _labels(parse_expression(expression))


def legend(text: str) -> set[str]:
    """The labels in a legend or an annotation."""
    return set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", text))


def _selectors(node: Any) -> Iterator[Any]:
    if isinstance(node, promql.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "param"):
        if (below := getattr(node, name, None)) is not None:
            yield from _selectors(below)
    for below in getattr(node, "args", ()):
        yield from _selectors(below)


def _of_metric(name: str) -> set[str]:
    if name in OTHER_METRICS:
        return OTHER_METRICS[name] | SCRAPE_LABELS
    if name in RECORDED:
        return labels(RECORDED[name])
    try:
        metric = by_name(name)
    except DsmsError as error:
        raise FaultError(str(error)) from None
    if metric.kind == HISTOGRAM and name == metric.name:
        raise FaultError(f"{name} is a histogram: only its _bucket, _sum and _count are scraped")
    return {*metric.labels, *SCRAPE_LABELS, *(["le"] if name.endswith("_bucket") else [])}


@singledispatch
def _labels(node: Any) -> set[str]:
    """A number or a text has no labels."""
    return set()


@_labels.register
def _(node: promql.VectorSelector) -> set[str]:
    found = _of_metric(node.name)
    _within({matcher.name for matcher in node.matchers.matchers}, found, node)
    return found


@_labels.register
def _(node: promql.MatrixSelector) -> set[str]:
    return _labels(node.vector_selector)


@_labels.register(promql.ParenExpr)
@_labels.register(promql.UnaryExpr)
@_labels.register(promql.SubqueryExpr)
def _(node: Any) -> set[str]:
    return _labels(node.expr)


@_labels.register
def _(node: promql.Call) -> set[str]:
    found = set().union(*map(_labels, node.args))
    if node.func.name != "histogram_quantile":
        return found
    _within({"le"}, found, node)
    return found - {"le"}


@_labels.register
def _(node: promql.AggregateExpr) -> set[str]:
    found = _labels(node.expr)
    if node.modifier is None:
        return set()
    _within(set(node.modifier.labels), found, node)
    by = node.modifier.type == promql.AggModifierType.By
    return set(node.modifier.labels) if by else found - set(node.modifier.labels)


@_labels.register
def _(node: promql.BinaryExpr) -> set[str]:
    left, right = _labels(node.lhs), _labels(node.rhs)
    if node.modifier is not None and node.modifier.matching is not None:
        _within(set(node.modifier.matching.labels), left & right, node)
    return left or right


def _within(used: set[str], there: set[str], node: Any) -> None:
    if used - there:
        raise FaultError(f"no label {sorted(used - there)} in {node}; there are {sorted(there)}")
