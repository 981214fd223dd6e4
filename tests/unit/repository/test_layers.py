"""The layers of each package: a part imports only parts that stand before it in this table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from support.paths import ROOT
from support.sources import module_of, name_of, parse, python_files

LAYERS = {
    "dsms": """
        errors clock durations build_id gc_tuning
        data config io arrivals expressions charts dataflow algebra operators
        plan engine measure policies query
        recording simulation run_sinks run_plan advice
        storage net live papers cli __main__
    """,
    "actors": """
        transport rpc cluster hosts scheduler ingest results metrics checkpoints
        deployment recovery control doctor console demo cli
    """,
    "loadgen": "spec push spark traces report cli",
    "grafana": "expressions panels dashboard overview operators scheduler load generate",
}


def parts(package: str) -> list[str]:
    """The parts of a package, lowest first."""
    return LAYERS[package].split()


def imported(file: Path, package: str) -> Iterator[tuple[int, str]]:
    """Each part of its own package that a file imports, anywhere in it, with the line."""
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module] if node.module != package else [f"{package}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == package and rest:
                yield node.lineno, rest.split(".")[0]


def upward_imports(root: Path, package: str) -> list[str]:
    """Imports of a part that stands behind the importing one, as places to go to."""
    order = {part: place for place, part in enumerate(parts(package))}
    found = []
    for file in python_files(package, root=root):
        own = module_of(file, root).split(".")[1:2]
        if not own:
            continue  # the package's own __init__ names what is public
        for line, part in imported(file, package):
            if part in order and order[part] > order[own[0]]:
                found.append(f"{name_of(file, root)}:{line} imports {package}.{part}, which stands above {own[0]}")
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_every_part_imports_only_what_stands_before_it(package: str) -> None:
    assert upward_imports(ROOT, package) == []


@pytest.mark.parametrize("package", LAYERS)
def test_every_part_has_its_place_in_the_table(package: str) -> None:
    there = {module_of(file).split(".")[1] for file in python_files(package) if file.parent != ROOT / package}
    there |= {file.stem for file in (ROOT / package).glob("*.py")} - {"__init__"}
    assert there == set(parts(package))


@pytest.mark.parametrize(
    ("lower", "upper"), [pair for package in LAYERS for pair in pairwise(parts(package)) if package == "dsms"]
)
def test_an_upward_import_is_found(tmp_path: Path, lower: str, upper: str) -> None:
    file = tmp_path / "dsms" / lower / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text(f"def f():\n    from dsms.{upper} import x")
    assert upward_imports(tmp_path, "dsms") == [f"dsms/{lower}/a.py:2 imports dsms.{upper}, which stands above {lower}"]
    file.write_text(f"from dsms.{lower}.b import x")
    parse.cache_clear()
    assert upward_imports(tmp_path, "dsms") == []


def import_cycles(package: str) -> list[list[str]]:
    """Cycles among a package's files, by the imports that run when a module is loaded."""
    files = {module_of(file): file for file in python_files(package)}
    graph: dict[str, set[str]] = {}
    for module, file in files.items():
        graph[module] = set()
        for node in parse(file).body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                graph[module] |= {name if name in files else node.module for name in names} & set(files)
            elif isinstance(node, ast.Import):
                graph[module] |= {alias.name for alias in node.names} & set(files)
    cycles, done = [], set()

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            cycles.append([*path[path.index(module) :], module])
        elif module not in done:
            for other in sorted(graph[module]):
                visit(other, [*path, module])
            done.add(module)

    for module in sorted(graph):
        visit(module, [])
    return cycles


@pytest.mark.parametrize("package", LAYERS)
def test_no_two_files_import_each_other_in_a_circle(package: str) -> None:
    assert import_cycles(package) == []
