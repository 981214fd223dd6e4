"""How far virtual time, or a number of runs, has come, for people who wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def time_bar(text: str, until: float | None) -> Iterator[Callable[[float], None] | None]:
    """A bar on standard error; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
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
def runs_bar() -> Iterator[Callable[[str, int, int], None] | None]:
    """The same for runs: told the last one's name, how many are done, and how many there are."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total} runs"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, done, total: bar.update(task, description=name, completed=done, total=total)
