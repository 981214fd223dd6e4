"""The command line, `dsms COMMAND …`; other packages add commands by entry point."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from dsms.cli.command_table import COMMANDS, find_commands, load_command, read_summaries
from dsms.cli.signals import handle_signals
from dsms.errors import DsmsError, FailedError, OperatorError

__all__ = ["COMMANDS", "main"]

log = logging.getLogger("dsms")
DESCRIPTION = "A data stream management system with a swappable scheduler: simulate, run, compare and explain."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 the run failed, 2 wrong call or plan, 130 interrupted."""
    _write_log("text")
    try:
        with handle_signals():
            return _run(sys.argv[1:] if arguments is None else list(arguments))
    except DsmsError as error:
        log.error("%s", error)
        return 1 if isinstance(error, FailedError) else 2
    except KeyboardInterrupt:
        log.error("stopped")
        return 130
    except BrokenPipeError:  # the reader of our output closed it; the flush at exit must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OperatorError as error:
        log.error("the run failed: %s", error)
        return 1
    except Exception as error:
        log.error("the run failed: %s: %s", type(error).__name__, error)
        return 1


def _run(words: list[str]) -> int:
    """Import the command that is named, and no other, and run it."""
    points = find_commands()
    place = next((place for place, word in enumerate(words) if word in points), len(words))
    parser, commands = _make_parser()
    if place == len(words) or {"-h", "--help"} & set(words[:place]):
        for name, summary in read_summaries(points).items():
            commands.add_parser(name, help=summary)
        parser.parse_args(words)  # prints the help or what is wrong, and ends
    command = load_command(points[words[place]])
    for name in points:
        added = commands.add_parser(name, description=command.__doc__)
        if name == words[place]:
            command.options(added)
    given = parser.parse_args(words)
    _write_log(given.log)
    code = int(command.run(given) or 0)
    if sys.stdout is not None:  # closed by the caller
        sys.stdout.flush()
    return code


def _make_parser() -> tuple[argparse.ArgumentParser, Any]:
    """A parser with the options of all commands, and what commands are added to."""
    parser = argparse.ArgumentParser(prog="dsms", description=DESCRIPTION)
    parser.add_argument("--version", action=_VersionAction, nargs=0, help="print the version and end")
    parser.add_argument(
        "--log", choices=("text", "json"), default="text", help="format of messages on standard error (default: text)"
    )
    return parser, parser.add_subparsers(dest="command", required=True, metavar="COMMAND")


class _VersionAction(argparse.Action):
    """Prints the version, which takes milliseconds to find, only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"dsms {version('dsms')}")
        parser.exit()


def _write_log(form: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter("dsms: %(message)s"))
    log.handlers[:] = [handler]
    log.propagate = False


class JsonLines(logging.Formatter):
    """Formats a message as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"level": record.levelname.lower(), "message": record.getMessage(), "logger": record.name}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
