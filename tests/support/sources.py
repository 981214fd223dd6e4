"""The Python files of the repository as syntax trees, for tests that check how the code is written."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.paths import ROOT

PACKAGES = ("dsms", "actors", "loadgen", "grafana")
FOLDERS = (*PACKAGES, "tests")
GENERATED = {"node_modules"}


def python_files(*folders: str, root: Path = ROOT) -> list[Path]:
    """All Python files below these folders, in order."""
    found = [file for folder in folders for file in (root / folder).rglob("*.py")]
    return sorted(file for file in found if not GENERATED & set(file.parts))


def name_of(file: Path, root: Path = ROOT) -> str:
    """A file's path in the repository, as messages show it."""
    return str(file.relative_to(root))


def module_of(file: Path, root: Path = ROOT) -> str:
    """The dotted name under which a file is imported."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parse(file: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(file.read_text(encoding="utf-8"))


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """Every comment and every text literal of a file with its line: docstrings, messages, help."""
    source = file.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")
