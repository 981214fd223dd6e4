"""Watch a deployment in the terminal: policy, queues, rates, latency, staleness and phases; Ctrl-C ends it.

If the output is not a terminal, one view is printed. `dsms status --help` explains the columns.
"""

from __future__ import annotations

import argparse
from threading import Event

from rich.console import Console
from rich.live import Live

from actors.cli.status_screen import render_status
from actors.control.client import ControlClient, add_common_options, open_client
from dsms.cli.arguments import parse_positive

REFRESH_INTERVAL_S = 1.0
DEFAULT_HEIGHT_LINES = 50  # without a terminal


def options(parser: argparse.ArgumentParser) -> None:
    add_common_options(parser)
    parser.add_argument(
        "--every",
        type=parse_positive,
        metavar="SECONDS",
        default=REFRESH_INTERVAL_S,
        help=f"time between two views (default: {REFRESH_INTERVAL_S:g})",
    )
    parser.add_argument("--once", action="store_true", help="print one view and end")


def run(given: argparse.Namespace) -> int:
    console = Console()
    with open_client(given) as client:
        if given.once or not console.is_terminal:
            console.print(
                render_status(client.status(), console.height - 1 if console.is_terminal else DEFAULT_HEIGHT_LINES)
            )
        else:
            watch(client, console, given.every)
    return 0


def watch(client: ControlClient, console: Console, every: float) -> None:
    """Keep the screen up to date until Ctrl-C."""
    never = Event()
    try:
        first = render_status(client.status(), console.height)
        with Live(first, console=console, screen=True, auto_refresh=False) as live:
            while not never.wait(every):
                live.update(render_status(client.status(), console.height), refresh=True)
    except KeyboardInterrupt:
        return
