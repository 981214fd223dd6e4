"""Finds the commands, ours and those of other packages, and reads what each does without importing it."""

from __future__ import annotations

import argparse
import ast
import logging
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Protocol

from dsms.errors import DsmsError

COMMAND_GROUP = "dsms.commands"
COMMANDS = {  # by name: the module
    "run": "dsms.cli.run",
    "sim": "dsms.cli.sim",
    "explain": "dsms.cli.explain",
    "recommend": "dsms.cli.recommend",
    "reproduce": "dsms.cli.reproduce",
    "whatif": "dsms.cli.whatif",
    "push": "dsms.cli.push",
    "tail": "dsms.cli.tail",
}
log = logging.getLogger("dsms")


class Command(Protocol):
    """A module, or an object, that is a command; its docstring is the help text."""

    __doc__: str | None

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options."""

    def run(self, given: argparse.Namespace) -> int | None:
        """Carry the command out; returns the exit code."""


def find_commands() -> dict[str, EntryPoint]:
    """The place of every command by name; another package cannot replace a command of ours."""
    ours = {name: EntryPoint(name, module, COMMAND_GROUP) for name, module in COMMANDS.items()}
    others = {point.name: point for point in entry_points(group=COMMAND_GROUP)}
    return ours | {name: point for name, point in others.items() if name not in ours}


def load_command(point: EntryPoint) -> Command:
    """Import a command."""
    try:
        command: Command = point.load()
    except Exception as error:
        raise DsmsError(_describe_failure(point, error)) from None
    return command


def read_summaries(points: dict[str, EntryPoint]) -> dict[str, str]:
    """The first line about each command; one that cannot be found is left out with a warning."""
    summaries = {}
    for name, point in points.items():
        try:
            summaries[name] = (_read_docstring(point) or "").partition("\n")[0]
        except Exception as error:
            log.warning("%s", _describe_failure(point, error))
    return summaries


def _read_docstring(point: EntryPoint) -> str | None:
    """The docstring of a module from its source; an object in a module has to be imported for it."""
    if point.attr:
        return (load_command(point).__doc__ or "").strip()
    spec = find_spec(point.module)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {point.module!r}")
    source = getattr(spec.loader, "get_source", lambda _: None)(point.module)
    return (load_command(point).__doc__ or "").strip() if source is None else ast.get_docstring(ast.parse(source))


def _describe_failure(point: EntryPoint, error: Exception) -> str:
    return f"command {point.name!r} is not available: {point.value!r} cannot be loaded: {error}"
