"""A dashboard as Grafana loads it: panels on a grid, variables, annotations, and links to the other dashboards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from grafana.expressions import SYSTEM_MATCHER, find_variables, select
from grafana.panels import DATASOURCE, Json

SCHEMA_VERSION = 42  # of the dashboard JSON; Grafana migrates older versions when it loads them
GRID_COLUMNS = 24
TAG = "dsms"
VARIABLES = {  # by variable: its label and the query for its values; a later one depends on the earlier ones
    "system": ("System", "label_values(dsms_build_info, instance)"),
    "domain": ("Domain", f"label_values(dsms_memory_tuples{{{SYSTEM_MATCHER}}}, domain)"),
    "query": ("Query", f'label_values(dsms_query_weight{{{SYSTEM_MATCHER},domain=~"$domain"}}, query)'),
    "operator": (
        "Operator",
        f'label_values(dsms_operator_info{{{SYSTEM_MATCHER},domain=~"$domain",query=~"$query"}}, operator)',
    ),
}


@dataclass(frozen=True)
class Row:
    """Panels of equal width, side by side."""

    title: str  # "": no heading
    height: int
    panels: Sequence[Json]


@dataclass(frozen=True)
class Dashboard:
    """One dashboard: an identifier, a title, a description and its rows of panels."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]

    def to_json(self) -> Json:
        """The dashboard in Grafana's format."""
        panels = _place_panels(self.rows)
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
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
            "templating": {"list": _variables(find_variables(json.dumps(panels)))},
            "panels": panels,
        }


def _place_panels(rows: Sequence[Row]) -> list[Json]:
    """All panels with grid positions and numbers, from top to bottom."""
    found: list[Json] = []
    top = 0
    for row in rows:
        if row.title:
            place = {"x": 0, "y": top, "w": GRID_COLUMNS, "h": 1}
            found.append({"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": place})
            top += 1
        width = GRID_COLUMNS // len(row.panels)
        for column, panel in enumerate(row.panels):
            found.append({**panel, "gridPos": {"x": column * width, "y": top, "w": width, "h": row.height}})
        top += row.height
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _variables(used: set[str]) -> list[Json]:
    """The variables that panels use, and the variables these depend on."""
    for name, (_, query) in reversed(VARIABLES.items()):
        if name in used:
            used |= find_variables(query)
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
    return [source, *(_variable(name, *VARIABLES[name]) for name in VARIABLES if name in used)]


def _variable(name: str, label: str, query: str) -> Json:
    several = name != "system"  # two systems may have domains of the same name
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
        "refresh": 2,  # on every change of the time range, since queries are added and removed
        "regex": "",
        "sort": 1,
    }


def _annotations() -> list[Json]:
    """A vertical line at every policy swap, with the name of the new policy."""
    active = select("dsms_policy_active")
    return [
        {
            "name": "Policy swapped",
            "datasource": DATASOURCE,
            "enable": True,
            "hide": False,
            "iconColor": "purple",
            "expr": f"{active} == 1 unless {active} offset $__interval == 1",
            "step": "1s",
            "titleFormat": "{{policy}}",
            "textFormat": "active in domain {{domain}}",
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
