"""Write the dashboards as JSON files: `python -m grafana.generate`."""

from __future__ import annotations

import json
from pathlib import Path

from grafana.dashboard import Dashboard
from grafana.load import LOAD
from grafana.operators import OPERATORS
from grafana.overview import OVERVIEW
from grafana.scheduler import SCHEDULER

FOLDER = Path(__file__).with_name("dashboards")
DASHBOARDS = (OVERVIEW, OPERATORS, SCHEDULER, LOAD)


def dashboard_path(dashboard: Dashboard) -> Path:
    """The file of a dashboard."""
    return FOLDER / f"{dashboard.uid.removeprefix('dsms-')}.json"


def render_dashboard(dashboard: Dashboard) -> str:
    """A dashboard as JSON text, the same on every run."""
    return json.dumps(dashboard.to_json(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in DASHBOARDS:
        dashboard_path(each).write_text(render_dashboard(each), encoding="utf-8")
        print(dashboard_path(each).relative_to(Path.cwd()))
