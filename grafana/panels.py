"""Panels as Grafana's JSON; units and descriptions come from the table of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana.expressions import metrics_in

Json = dict[str, Any]
Limits = Sequence[tuple[float, str]]  # from where on another colour

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"seconds": "s", "bytes": "bytes", "ratio": "percentunit"}  # all others are plain numbers
RATES = {"rows": "rowsps", "bytes": "Bps", "seconds": "percentunit", "frames": "cps"}  # of counters; others: "cps"
GOOD, FAIR, BAD, PLAIN = "green", "yellow", "red", "transparent"
SHARE: Limits = ((0.8, FAIR), (0.95, BAD))


@dataclass(frozen=True)
class Ask:
    """One expression of a panel, and what its series are called."""

    expression: str
    legend: str = ""
    dashed: bool = False  # a limit, not something that happens
    instant: bool = False  # only how it is now, as a table


def timeseries(
    title: str,
    *asked: Ask,
    unit: str | None = None,
    stacked: bool = False,
    limits: Limits = (),
    most: float | None = None,
    floor: float | None = 0.0,
) -> Json:
    """Lines over time."""
    custom: Json = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 40 if stacked else 8,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if limits else "off"},
    }
    made = _panel("timeseries", title, asked, unit, limits)
    made["fieldConfig"]["defaults"] |= {"custom": custom, "color": {"mode": "palette-classic"}}
    made["fieldConfig"]["defaults"] |= _given(min=floor, max=most)
    made["fieldConfig"]["overrides"] = [
        _override("byFrameRefID", ref, ("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}), ("custom.lineWidth", 2))
        for ref, ask in _numbered(asked)
        if ask.dashed
    ]
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    made["options"] = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    return made


def stat(title: str, ask: Ask, unit: str | None = None, limits: Limits = (), base: str = GOOD) -> Json:
    """One number, the last, over a small line."""
    made = _panel("stat", title, (ask,), unit, limits, base)
    made["options"] = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value" if limits else "none",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": True,
    }
    made["fieldConfig"]["defaults"]["color"] = {"mode": "thresholds"}
    return made


def states(title: str, *asked: Ask, names: Sequence[tuple[str, str]]) -> Json:
    """Bands over time: what 0, 1, … are called, and their colours."""
    made = _panel("state-timeline", title, asked, "short", ())
    shown = {
        str(value): {"text": text or " ", "color": color, "index": value} for value, (text, color) in enumerate(names)
    }
    made["fieldConfig"]["defaults"] |= {
        "mappings": [{"type": "value", "options": shown}],
        "color": {"mode": "thresholds"},
        "custom": {"fillOpacity": 80, "lineWidth": 0},
    }
    made["options"] = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.9,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return made


def table(title: str, columns: Sequence[tuple[str, str, str | None]], by: Sequence[str]) -> Json:
    """One line for each of what is told apart by these labels; columns are name, expression and unit, as of now.

    Of a column without a name only the labels are shown.
    """
    asked = tuple(Ask(expression, instant=True) for _, expression, _ in columns)
    made = _panel("table", title, asked, "short", ())
    refs = [ref for ref, _ in _numbered(asked)]
    named = {f"Value #{ref}": name for ref, (name, _, _) in zip(refs, columns, strict=True)}
    hidden = ["Time", *(value for value, name in named.items() if not name)]
    made["transformations"] = [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": dict.fromkeys(hidden, True),
                "indexByName": {name: place for place, name in enumerate([*by, *named])},
                "renameByName": {value: name for value, name in named.items() if name},
            },
        },
    ]
    made["fieldConfig"]["defaults"]["custom"] = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True}
    made["fieldConfig"]["overrides"] = [
        _override("byName", name, ("unit", unit)) for name, _, unit in columns if unit is not None
    ]
    made["options"] = {"cellHeight": "sm", "showHeader": True}
    return made


def _panel(kind: str, title: str, asked: Sequence[Ask], unit: str | None, limits: Limits, base: str = GOOD) -> Json:
    expressions = [ask.expression for ask in asked]
    steps = [{"color": base, "value": None}, *({"color": color, "value": value} for value, color in limits)]
    return {
        "type": kind,
        "title": title,
        "description": described(expressions),
        "datasource": DATASOURCE,
        "targets": [_target(ref, ask) for ref, ask in _numbered(asked)],
        "fieldConfig": {
            "defaults": {
                "unit": unit_of(expressions[0]) if unit is None else unit,
                "thresholds": {"mode": "absolute", "steps": steps},
                "mappings": [],
            },
            "overrides": [],
        },
    }


def described(expressions: Sequence[str]) -> str:
    """What the metrics in them mean, in the table's words."""
    found = metrics_in(expressions)
    if len(found) == 1:
        return found[0].help
    return "\n\n".join(f"`{metric.name}`: {metric.help}" for metric in found)


def unit_of(expression: str) -> str:
    """Grafana's name for the unit of an expression's first metric, or of its rate."""
    found = metrics_in([expression])
    if not found:
        return "short"
    if "rate(" in expression and "histogram_quantile" not in expression:
        return RATES.get(found[0].unit, "cps")
    return UNITS.get(found[0].unit, "short")


def _target(ref: str, ask: Ask) -> Json:
    kind = {"instant": True, "range": False, "format": "table"} if ask.instant else {"instant": False, "range": True}
    return {
        "refId": ref,
        "datasource": DATASOURCE,
        "expr": ask.expression,
        "legendFormat": ask.legend or "__auto",
        "editorMode": "code",
        **kind,
    }


def _numbered(asked: Sequence[Ask]) -> list[tuple[str, Ask]]:
    return [(chr(ord("A") + place), ask) for place, ask in enumerate(asked)]


def _override(matcher: str, which: str, *properties: tuple[str, Any]) -> Json:
    return {
        "matcher": {"id": matcher, "options": which},
        "properties": [{"id": name, "value": value} for name, value in properties],
    }


def _given(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}
