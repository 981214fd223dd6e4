"""The command line: `dsms COMMAND …`; commands of other packages come in by entry point."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

from dsms.cli import sim
from dsms.errors import DsmsError

COMMANDS: dict[str, Any] = {"sim": sim}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 1 the run failed, 2 wrong call or plan."""
    parser = argparse.ArgumentParser(prog="dsms", description="Data streams, and the scheduler that decides.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    known = dict(COMMANDS)
    for point in entry_points(group="dsms.commands"):
        known.setdefault(point.name, point.load())
    for name, command in known.items():
        about = (command.__doc__ or "").strip().splitlines()[0]
        command.options(commands.add_parser(name, help=about, description=command.__doc__))
    logging.basicConfig(format="dsms: %(levelname)s: %(message)s")
    given = parser.parse_args(arguments)
    try:
        return int(known[given.command].run(given) or 0)
    except DsmsError as error:
        print(f"dsms: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dsms: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever reads our output has seen enough
        sys.stderr.close()
        return 0
    except Exception as error:
        logging.getLogger("dsms").debug("where it failed", exc_info=True)
        print(f"dsms: the run failed: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
