"""The fenced blocks of all Markdown files, and which suite runs or compares each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from support.paths import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SKIPPED = {"node_modules", ".venv", ".git", ".pytest_cache", "demo-report", "reproduction"}


class Suite(StrEnum):
    """Where a command, a program or an output of a document is checked."""

    LOCAL = "unit/repository/test_documents.py: run in this process"
    PLAN = "unit/repository/test_documents.py: read as a plan or a table of one"
    DIAGRAM = "unit/repository/test_documents.py: names compared with the code"
    OUTPUT = "unit/repository/test_documents.py or on_spark/test_documents.py: compared with what is printed"
    MAKE = "unit/repository/test_documents.py: a target of the Makefile, run by its short form"
    DEPLOY = "unit/repository/test_documents.py: options of a script; run by on_ray/test_two_nodes.py"
    TOKENS = "unit/actors/doctor/test_doctor.py: run as a shell script"
    RAY = "on_ray/test_documents.py: run on the shared Ray"
    SPARK = "on_spark/test_documents.py: run on the shared Spark"


@dataclass(frozen=True)
class Block:
    """One fenced block: where it is, its language and its text."""

    file: str
    line: int
    language: str
    text: str
    before: str  # the line of text above it

    @property
    def place(self) -> str:
        """File and line, as editors open them."""
        return f"{self.file}:{self.line}"


@cache
def documents() -> tuple[Path, ...]:
    """Every Markdown file of the repository."""
    return tuple(sorted(file for file in ROOT.rglob("*.md") if not SKIPPED & set(file.relative_to(ROOT).parts)))


@cache
def blocks() -> tuple[Block, ...]:
    """Every fenced block of every document."""
    found = []
    for file in documents():
        text = file.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            above = text[: match.start()].rstrip().rpartition("\n")[2]
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(str(file.relative_to(ROOT)), line, match[1], match[2], above))
    return tuple(found)


def lines(suite: Suite, file: str | None = None) -> list[str]:
    """The shell commands that a suite runs, in the documents' order."""
    return [
        line
        for block in blocks()
        if block.language == "sh" and file in (None, block.file)
        for line in block.text.splitlines()
        if suite_of_command(line) is suite
    ]


def block_with(language: str, text: str) -> Block:
    """The only block of a language that contains this text."""
    [found] = [block for block in blocks() if block.language == language and text in block.text]
    return found


def suite_of_command(line: str) -> Suite | None:
    """Which suite runs a shell command; None: no suite, so it must not be shown."""
    words = line.split()
    if words[:1] == ["make"]:
        return Suite.MAKE
    if words[0] in ("umask", "printf") or "doctor --token-file" in line:
        return Suite.TOKENS
    if words[0].startswith("deploy/"):
        return Suite.DEPLOY
    if words[0] != ".venv/bin/dsms":
        return None
    if words[1] in ("load", "report", "trace") or "--record /tmp/runs" in line:
        return Suite.SPARK
    if words[1] in ("sim", "run", "explain", "recommend", "whatif", "reproduce") and "--runner" not in words:
        return Suite.LOCAL
    return Suite.RAY


def suites(block: Block) -> set[Suite | None]:
    """The suites that run or compare a block; None among them: something in it that no suite covers."""
    if block.language == "sh":
        return {suite_of_command(line) for line in block.text.splitlines()}
    if block.language == "toml":
        return {Suite.PLAN}
    if block.language == "python":
        if "dsms.connect" in block.text:
            return {Suite.RAY}
        return {Suite.SPARK if "loadgen" in block.text else Suite.LOCAL}
    if block.language == "text":
        return {Suite.DIAGRAM if "──►" in block.text or "─►" in block.text or "leaves:" in block.text else Suite.OUTPUT}
    return {None}
