"""Folders, files, names and signatures: the limits that keep the repository easy to find one's way in."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from support.paths import ROOT
from support.sources import FOLDERS, PACKAGES, name_of, parse, python_files

FOLDER_LIMIT = 14
LARGER_FOLDERS = {"dsms/policies": 24, "dsms/cli": 24, "actors/cli": 24}  # one policy or one command a file
FILE_LIMIT_LINES = 350
ANY_LIMIT = 0.05  # of the signatures in `actors`
SAME_CLASS_NAME_ALLOWED: set[str] = set()
ERROR_NAMES = {"error", "failure", "exception", "err", "exc", "message", "reason"}


def test_no_folder_has_too_many_files() -> None:
    sizes = Counter(name_of(file.parent) for file in python_files(*FOLDERS) if file.name != "__init__.py")
    assert {name: size for name, size in sizes.items() if size > LARGER_FOLDERS.get(name, FOLDER_LIMIT)} == {}


def test_no_file_is_too_long_to_have_one_subject() -> None:
    lengths = {name_of(file): len(file.read_text(encoding="utf-8").splitlines()) for file in python_files(*PACKAGES)}
    assert {file: lines for file, lines in lengths.items() if lines > FILE_LIMIT_LINES} == {}


def test_a_class_name_is_defined_once() -> None:
    places = defaultdict(list)
    for file in python_files(*FOLDERS):
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{name_of(file)}:{node.lineno}")
    twice = {name: where for name, where in places.items() if len(where) > 1 and name not in SAME_CLASS_NAME_ALLOWED}
    assert twice == {}
    assert len(SAME_CLASS_NAME_ALLOWED) <= 10


def test_steps_have_names_not_numbers() -> None:
    numbered = re.compile(r"\bsteps?\[-?\d+\]\[\d+\]|\bstep\[\d+\]")
    found = [
        f"{name_of(file)}:{number}"
        for file in python_files(*FOLDERS)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if numbered.search(line) and file != Path(__file__)
    ]
    assert found == []


def signatures(folder: str) -> list[tuple[str, bool]]:
    """Every function of a folder, and whether `Any` is in its signature."""
    found = []
    for file in python_files(folder):
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                arguments += [extra for extra in (node.args.vararg, node.args.kwarg) if extra is not None]
                types = [argument.annotation for argument in arguments] + [node.returns]
                names = {part.id for kind in types if kind for part in ast.walk(kind) if isinstance(part, ast.Name)}
                found.append((f"{name_of(file)}:{node.lineno} {node.name}", "Any" in names))
    return found


def test_few_signatures_of_actors_say_any() -> None:
    found = signatures("actors")
    loose = [place for place, is_any in found if is_any]
    assert len(loose) <= ANY_LIMIT * len(found), loose


def reads_message(test: ast.expr) -> bool:
    """Whether a condition looks into the text of an error."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            texts = node.comparators
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in ("startswith", "endswith", "find", "search", "match"):
                continue
            texts = [node.func.value, *node.args]
        else:
            continue
        for text in texts:
            if isinstance(text, ast.Call) and isinstance(text.func, ast.Name) and text.func.id in ("str", "repr"):
                inner = text.args[0] if text.args else None
                if isinstance(inner, ast.Name) and inner.id in ERROR_NAMES:
                    return True
            if isinstance(text, ast.Attribute) and text.attr == "args" and isinstance(text.value, ast.Name):
                return True
    return False


def test_no_decision_is_made_by_the_text_of_an_error() -> None:
    found = [
        f"{name_of(file)}:{node.lineno}"
        for file in python_files(*PACKAGES)
        for node in ast.walk(parse(file))
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert) and reads_message(node.test)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("'gone' in str(error)", True),
        ("str(failure).startswith('no')", True),
        ("'x' in error.args", True),
        ("re.search('gone', str(error))", True),
        ("name in names", False),
        ("path.endswith('.csv')", False),
    ],
)
def test_a_decision_by_text_is_found(condition: str, expected: bool) -> None:
    assert reads_message(ast.parse(condition, mode="eval").body) is expected


def test_no_test_imports_another_test() -> None:
    found = [
        f"{name_of(file)}:{node.lineno} imports {name}"
        for file in python_files("tests")
        for node in ast.walk(parse(file))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
        if name.split(".")[-1].startswith("test_") or name.split(".")[-1] == "conftest"
    ]
    assert found == []


def test_the_top_level_is_what_the_customer_fixed() -> None:
    allowed = {"dsms", "actors", "deploy", "grafana", "tests", "loadgen"}
    tracked = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert {name for name in tracked if any((ROOT / name).rglob("*.py"))} <= allowed | {"build", "demo-report"}
