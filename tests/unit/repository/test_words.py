"""Plain words: coined and vague words stay out of docstrings, comments, messages, help and documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.paths import ROOT
from support.sources import FOLDERS, name_of, prose, python_files

BANNED = (
    "whoever", "whomever", "somebody", "goods", "anew", "let go", "lets go", "so many", "of late", "is wanted",
    "are wanted", "those that", "those who", "errand", "helm", "lookout", "arrears", "salvage", "parcel", "left aside",
    "put aside", "gone on with", "hang together", "whether it is",
)  # fmt: skip
PATTERN = re.compile(r"(?<![\w-])(" + "|".join(BANNED) + r")(?![\w-])", re.IGNORECASE)
TEXTS = ("*.md", "*.toml", "*.yml", "*.yaml", "Makefile")
SKIPPED = {"node_modules", ".venv", ".git"}
README_LIMIT_LINES, LINE_LIMIT_CHARACTERS = 250, 120
DESIGN_LIMIT_LINES, GLOSSARY_LIMIT = 150, 45


def documents() -> list[Path]:
    """Every Markdown and configuration file of the repository."""
    found = {file for pattern in TEXTS for file in ROOT.rglob(pattern)}
    return sorted(file for file in found if not SKIPPED & set(file.parts))


def test_no_banned_word_in_code() -> None:
    found = [
        f"{name_of(file)}:{line}: {match.group()}"
        for file in python_files(*FOLDERS)
        if file != Path(__file__)
        for line, text in prose(file)
        for match in PATTERN.finditer(text)
    ]
    assert found == []


def test_no_banned_word_in_documents() -> None:
    found = [
        f"{name_of(file)}:{line}: {match.group()}"
        for file in documents()
        for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in PATTERN.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# whoever reads it", ["whoever"]),
        ("a Number is wanted", ["is wanted"]),
        ("so\tmany", []),
        ("overwhelm", []),
        ("the helm of it", ["helm"]),
    ],
)
def test_a_banned_word_is_found(text: str, expected: list[str]) -> None:
    assert PATTERN.findall(text) == expected


def test_the_readme_is_a_page() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LIMIT_LINES
    assert [number for number, line in enumerate(lines, 1) if len(line) > LINE_LIMIT_CHARACTERS] == []


def test_the_files_of_a_live_row_exist() -> None:
    text = (ROOT / "dsms/DESIGN.md").read_text(encoding="utf-8")
    table = text.partition("## One live row")[2].partition("\n## ")[0]
    named = set(re.findall(r"(\w+\.py)", table))
    assert len(named) > 30
    assert named - {file.name for file in python_files("dsms", "actors")} == set()


def test_the_design_is_short_and_its_glossary_too() -> None:
    text = (ROOT / "dsms/DESIGN.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= DESIGN_LIMIT_LINES
    glossary = text.partition("## Glossary")[2].partition("\n## ")[0]
    terms = [line for line in glossary.splitlines() if line.startswith("|")][2:]
    assert 20 <= len(terms) <= GLOSSARY_LIMIT
