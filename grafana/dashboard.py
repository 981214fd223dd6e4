"""A dashboard around its panels: where they stand, variables for what they use, annotations, links to the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from grafana.expressions import SYSTEM, chosen, variables_in
from grafana.panels import DATASOURCE, Json

SCHEMA = 42  # version of dashboards' JSON that this is; Grafana brings older ones up to its own when it loads them
WIDTH = 24
TAG = "dsms"
VALUES = {  # by variable: its label, and what it can be; later ones go by the choice of earlier ones
    "system": ("System", "label_values(dsms_build_info, instance)"),
    "domain": ("Domain", f"label_values(dsms_memory_tuples{{{SYSTEM}}}, domain)"),
    "query": ("Query", f'label_values(dsms_query_weight{{{SYSTEM},domain=~"$domain"}}, query)'),
    "operator": (
        "Operator",
        f'label_values(dsms_operator_info{{{SYSTEM},domain=~"$domain",query=~"$query"}}, operator)',
    ),
}


@dataclass(frozen=True)
class Row:
    """Panels side by side, of equal width."""

    title: str  # "": no heading above them
    height: int
    panels: Sequence[Json]


@dataclass(frozen=True)
class Dashboard:
    """One page."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]

    def to_json(self) -> Json:
        """As Grafana loads it."""
        panels = _placed(self.rows)
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "5s",
            "time": {"from": "now-15m", "to": "now"},
            "timezone": "browser",
            "fiscalYearStartMonth": 0,
            "timepicker": {},
            "annotations": {"list": _annotations()},
            "links": [_link()],
            "templating": {"list": _variables(variables_in(json.dumps(panels)))},
            "panels": panels,
        }


def _placed(rows: Sequence[Row]) -> list[Json]:
    """All panels with their places and numbers, from top to bottom."""
    found: list[Json] = []
    top = 0
    for row in rows:
        if row.title:
            place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
            found.append({"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": place})
            top += 1
        width = WIDTH // len(row.panels)
        for column, panel in enumerate(row.panels):
            found.append({**panel, "gridPos": {"x": column * width, "y": top, "w": width, "h": row.height}})
        top += row.height
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _variables(used: set[str]) -> list[Json]:
    """Those that panels use, and those that these depend on."""
    for name, (_, query) in reversed(VALUES.items()):
        if name in used:
            used |= variables_in(query)
    source = {
        "type": "datasource",
        "name": "datasource",
        "label": "Prometheus",
        "query": "prometheus",
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
    }
    return [source, *(_variable(name, *VALUES[name]) for name in VALUES if name in used)]


def _variable(name: str, label: str, query: str) -> Json:
    several = name != "system"  # domains of several systems may have the same names
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name, "qryType": 1},
        **({"current": {"text": ["All"], "value": ["$__all"]}} if several else {}),
        "includeAll": several,
        "multi": several,
        "hide": 0,
        "options": [],
        "refresh": 2,  # when the time changes: queries come and go
        "regex": "",
        "sort": 1,
    }


def _annotations() -> list[Json]:
    """A line wherever another policy was put in charge, named after it."""
    active = chosen("dsms_policy_active")
    return [
        {
            "name": "Policy put in charge",
            "datasource": DATASOURCE,
            "enable": True,
            "hide": False,
            "iconColor": "purple",
            "expr": f"{active} == 1 unless {active} offset $__interval == 1",
            "step": "1s",
            "titleFormat": "{{policy}}",
            "textFormat": "decides in domain {{domain}}",
            "tagKeys": "domain",
        }
    ]


def _link() -> Json:
    return {
        "type": "dashboards",
        "title": "dsms",
        "tags": [TAG],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }
