"""Watch a running system: who decides, queues, rates, latency, staleness, and the phases so far; Ctrl-C ends it.

Where the output is not a terminal it is printed once. `dsms status --help` explains the columns.
"""

from __future__ import annotations

import argparse
from threading import Event

from rich.console import Console
from rich.live import Live

from actors.cli.asking import System, common, system
from actors.cli.view import view
from dsms.cli.arguments import positive

EVERY = 1.0
LINES = 50  # of a view that no terminal bounds


def options(parser: argparse.ArgumentParser) -> None:
    common(parser)
    parser.add_argument(
        "--every", type=positive, metavar="SECONDS", default=EVERY, help=f"how often to look (default: {EVERY:g})"
    )
    parser.add_argument("--once", action="store_true", help="print one view and end")


def run(given: argparse.Namespace) -> int:
    console = Console()
    with system(given) as running:
        if given.once or not console.is_terminal:
            console.print(view(running.ask("status"), console.height - 1 if console.is_terminal else LINES))
        else:
            watch(running, console, given.every)
    return 0


def watch(running: System, console: Console, every: float) -> None:
    """Keep the screen up to date until Ctrl-C."""
    never = Event()
    try:
        first = view(running.ask("status"), console.height)
        with Live(first, console=console, screen=True, auto_refresh=False) as live:
            while not never.wait(every):
                live.update(view(running.ask("status"), console.height), refresh=True)
    except KeyboardInterrupt:
        return
