"""The short form of `make grafana-check`: the dashboards by Grafana's own types, without drawing them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from browser import grafana_check

from grafana.generate import DASHBOARDS, dashboard_path

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node (Debian's package nodejs)")


@needs_node
@pytest.mark.parametrize("script", ["types.mjs", "draw.mjs"])
def test_a_script_is_valid_javascript(script: str) -> None:
    subprocess.run(["node", "--check", grafana_check.HERE / script], check=True, timeout=60)


@needs_node
def test_dashboards_have_the_types_of_grafana_s_schema() -> None:
    if not (grafana_check.HERE / "node_modules").exists():
        pytest.skip("needs Grafana's packages: make tests/browser/node_modules")
    grafana_check.check_types([str(dashboard_path(dashboard)) for dashboard in DASHBOARDS])
