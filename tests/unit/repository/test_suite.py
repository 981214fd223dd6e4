"""Checks the suite itself: no test imports another, and the lists in conftest name real files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.paths import TESTS


def imported(tree: ast.AST) -> list[str]:
    """Return the modules that a file imports."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


@pytest.mark.parametrize("file", sorted(TESTS.rglob("*.py")), ids=lambda file: file.relative_to(TESTS).as_posix())
def test_no_file_imports_a_test(file: Path) -> None:
    modules = imported(ast.parse(file.read_text()))
    assert [name for name in modules if any(part.startswith("test_") for part in name.split("."))] == []


def test_the_lists_of_conftest_name_files_that_exist() -> None:
    conftest = ast.parse((TESTS / "conftest.py").read_text())
    named = [
        node.value for node in ast.walk(conftest) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    files = [text for text in named if re.fullmatch(r"[\w/]+/test_\w+\.py", text)]
    assert len(files) > 10
    assert [file for file in files if not (TESTS / file).exists()] == []
