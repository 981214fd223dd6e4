"""Writes the dashboards' JSON: `python -m grafana.generate`."""

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


def file_of(dashboard: Dashboard) -> Path:
    """Where its JSON stands."""
    return FOLDER / f"{dashboard.uid.removeprefix('dsms-')}.json"


def text_of(dashboard: Dashboard) -> str:
    """Its JSON, the same whenever it is written."""
    return json.dumps(dashboard.to_json(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in DASHBOARDS:
        file_of(each).write_text(text_of(each), encoding="utf-8")
        print(file_of(each).relative_to(Path.cwd()))
