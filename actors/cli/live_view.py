"""Shows a deployment's status while a command runs: a refreshed view on a terminal, else a line now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from actors.cli.status_screen import render_status
from actors.control.client import ControlClient
from actors.control.status_tables import describe_policy, format_count, format_latencies
from dsms.cli.tables import format_percent
from dsms.errors import FailedError
from dsms.live.monitor.status import DeploymentStatus

SCREEN_INTERVAL_S, LINE_INTERVAL_S = 0.5, 2.0  # between two views on a terminal, between two lines elsewhere
STATUS_TIMEOUT_S = 5.0


@contextmanager
def show_live_view(client: ControlClient, note: str = "") -> Iterator[None]:
    """Show the deployment's status on standard output meanwhile, with a note above it."""
    enough = Event()
    console = Console()
    thread = Thread(target=_refresh_loop, args=(client, console, enough, note), name="live view", daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join(2 * STATUS_TIMEOUT_S)


def format_line(status: DeploymentStatus) -> str:
    """The first domain's policy and figures in one line."""
    one = status.domains[0]
    p50, p99 = format_latencies(one.latency)
    held, stale = format_count(one.held), format_percent(one.staleness)
    figures = f"{held:>6} held  p50 {p50:>8}  p99 {p99:>8}  {stale:>6} stale"
    return f"{one.now or 0:6.1f} s  {describe_policy(one.policy, one.decides):20} {figures}"


def _refresh_loop(client: ControlClient, console: Console, enough: Event, note: str) -> None:
    try:
        if not console.is_terminal:
            if note:
                print(note, flush=True)
            while not enough.wait(LINE_INTERVAL_S):
                print(format_line(client.status(STATUS_TIMEOUT_S)), flush=True)
            return
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while not enough.wait(SCREEN_INTERVAL_S):
                below = render_status(client.status(STATUS_TIMEOUT_S), console.height - bool(note))
                live.update(Group(Text(note, no_wrap=True), below) if note else below, refresh=True)
    except FailedError:  # the command itself reports it
        return
