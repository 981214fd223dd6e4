"""Shows on standard error what a command is doing: a status line, or a bar for virtual time or for a number of runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ShowStep = Callable[[str], None]


@contextmanager
def show_progress() -> Iterator[ShowStep]:
    """Show the step in progress: one line that changes on a terminal, one line for each step elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: print(f"dsms: {text}", file=sys.stderr, flush=True)
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text)


@contextmanager
def show_time_bar(text: str, until: float | None) -> Iterator[Callable[[float], None] | None]:
    """Show how far virtual time has advanced; yield None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("t = {task.fields[now]:g}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=until, now=0.0)
        yield lambda now: bar.update(task, completed=min(now, until or now), now=now)


@contextmanager
def show_runs_bar() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show the last run's name, how many runs are done, and how many there are; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total} runs"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, done, total: bar.update(task, description=name, completed=done, total=total)
