"""Looks at a running system beside what a command does: a view that is kept up, or a line now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from actors.cli import grids
from actors.cli.asking import System
from actors.cli.view import view
from dsms.cli.tables import percent
from dsms.errors import FailedError

SCREEN, LINE = 0.5, 2.0  # seconds between two looks: of a terminal, and of what reads lines
PATIENCE = 5.0  # for an answer


@contextmanager
def spectator(running: System, note: str = "") -> Iterator[None]:
    """Show the system meanwhile on standard output, and a note above it."""
    enough = Event()
    console = Console()
    thread = Thread(target=_look, args=(running, console, enough, note), name="spectator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join(2 * PATIENCE)


def line(status: dict[str, Any]) -> str:
    """Who decides and how it fares, in a line."""
    one = status["domains"][0]
    p50, p99 = grids.latencies(one)
    held, stale = grids.count(one.get("held")), percent(one.get("staleness"))
    fares = f"{held:>6} held  p50 {p50:>8}  p99 {p99:>8}  {stale:>6} stale"
    return f"{one.get('now') or 0:6.1f} s  {grids.decider(one):20} {fares}"


def _look(running: System, console: Console, enough: Event, note: str) -> None:
    try:
        if not console.is_terminal:
            if note:
                print(note, flush=True)
            while not enough.wait(LINE):
                print(line(running.ask("status", timeout=PATIENCE)), flush=True)
            return
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while not enough.wait(SCREEN):
                below = view(running.ask("status", timeout=PATIENCE), console.height - bool(note))
                live.update(Group(Text(note, no_wrap=True), below) if note else below, refresh=True)
    except FailedError:  # whoever does the work finds out, and says so
        return
