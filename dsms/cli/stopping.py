"""Ctrl-C and TERM for commands that start processes: one ends the command, and no further one disturbs the ending."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SOON = 0.05  # seconds after which an interruption that nobody heard is repeated


@contextmanager
def stoppable() -> Iterator[None]:
    """TERM meanwhile is as good as Ctrl-C, and neither is lost.

    Python drops an interruption that comes while it forks or collects garbage; then there is another.
    """

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    def dropped(error: sys.UnraisableHookArgs) -> None:
        if issubclass(error.exc_type, KeyboardInterrupt):
            threading.Timer(SOON, _thread.interrupt_main, (signal.SIGTERM,)).start()  # Ctrl-C may be ignored
        else:
            hook(error)

    before, hook = signal.signal(signal.SIGTERM, stop), sys.unraisablehook
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.unraisablehook = hook


@contextmanager
def undisturbed() -> Iterator[None]:
    """Neither does anything meanwhile: ending in good order takes seconds, and once is enough."""
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
