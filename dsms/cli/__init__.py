"""The command line, `dsms COMMAND …`; other packages add commands by entry point."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, version
from typing import Any

from dsms.cli import explain, push, recommend, reproduce, run, sim, tail, whatif
from dsms.errors import DsmsError, FailedError, OperatorError

log = logging.getLogger("dsms")
DESCRIPTION = "A data stream management system with a swappable scheduler: simulate, run, compare and explain."
COMMANDS: dict[str, Any] = {
    "run": run,
    "sim": sim,
    "explain": explain,
    "recommend": recommend,
    "reproduce": reproduce,
    "whatif": whatif,
    "push": push,
    "tail": tail,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 the run failed, 2 wrong call or plan."""
    try:
        known = _commands()
    except KeyboardInterrupt:
        return 130
    parser = argparse.ArgumentParser(prog="dsms", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"dsms {version('dsms')}")
    parser.add_argument(
        "--log", choices=("text", "json"), default="text", help="format of messages on standard error (default: text)"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in known.items():
        about = (command.__doc__ or "").strip().splitlines()[0]
        command.options(commands.add_parser(name, help=about, description=command.__doc__))
    given = parser.parse_args(arguments)
    _write_log(given.log)
    try:
        code = int(known[given.command].run(given) or 0)
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()
        return code
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


def _commands() -> dict[str, Any]:
    """Our commands and those of other packages; a command that cannot be loaded is left out with a warning."""
    known = dict(COMMANDS)
    for point in entry_points(group="dsms.commands"):
        try:
            known.setdefault(point.name, point.load())
        except Exception as error:
            log.warning("command %r is not available: %r cannot be loaded: %s", point.name, point.value, error)
    return known


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
