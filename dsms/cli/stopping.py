"""Ctrl-C and TERM for commands that start processes: one ends the command, and no further one disturbs the ending."""

from __future__ import annotations

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

    repeating: list[threading.Timer] = []
    main = threading.main_thread().ident

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    def dropped(error: sys.UnraisableHookArgs) -> None:
        if issubclass(error.exc_type, KeyboardInterrupt):
            # A real signal, as nothing else ends a sleep; TERM, as Ctrl-C may be ignored.
            repeating.append(threading.Timer(SOON, signal.pthread_kill, (main, signal.SIGTERM)))
            repeating[-1].start()
        else:
            hook(error)

    before, hook = signal.signal(signal.SIGTERM, stop), sys.unraisablehook
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if repeating:  # it must not come when TERM ends the process
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for timer in repeating:
                timer.cancel()
                timer.join()
        signal.signal(signal.SIGTERM, before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Neither does anything meanwhile: ending in good order takes seconds, and once is enough."""
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
