"""What a command is doing while people wait for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Tell = Callable[[str], None]


@contextmanager
def progress() -> Iterator[Tell]:
    """What is being done, on standard error: one line that changes for people who wait, a line each for files."""
    if not sys.stderr.isatty():
        yield lambda text: print(f"dsms: {text}", file=sys.stderr, flush=True)
        return
    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text)
