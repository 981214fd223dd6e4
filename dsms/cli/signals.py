"""Handles Ctrl-C and TERM: either ends a command in order, and neither disturbs an orderly shutdown."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNAL_REPEAT_S = 0.05  # after which an interruption that Python dropped is repeated
SIGNAL_CHECK_S = 1.0


@contextmanager
def handle_signals() -> Iterator[None]:
    """Treat TERM like Ctrl-C, and lose neither.

    Python drops a KeyboardInterrupt that is raised while it forks or collects garbage: a timer then raises another.
    Outside the main thread nothing is done: Python gives signals to the main thread alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    repeating: list[threading.Timer] = []
    main = threading.main_thread().ident

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    def dropped(error: sys.UnraisableHookArgs) -> None:
        if issubclass(error.exc_type, KeyboardInterrupt):
            # A real signal, as nothing else ends a sleep; TERM, as Ctrl-C may be ignored.
            repeating.append(threading.Timer(SIGNAL_REPEAT_S, signal.pthread_kill, (main, signal.SIGTERM)))
            repeating[-1].start()
        else:
            hook(error)

    before, hook = signal.signal(signal.SIGTERM, stop), sys.unraisablehook
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if repeating:  # a repeated TERM must not arrive once TERM ends the process again
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for timer in repeating:
                timer.cancel()
                timer.join()
        signal.signal(signal.SIGTERM, before)


def wait_for_signal() -> None:
    """Wait until Ctrl-C or TERM raises KeyboardInterrupt.

    A signal between Python's last look for one and the wait itself does not end the wait: so it is a short one.
    """
    never = threading.Event()
    while not never.wait(SIGNAL_CHECK_S):
        pass


@contextmanager
def ignore_signals() -> Iterator[None]:
    """Ignore Ctrl-C and TERM during an orderly shutdown, which takes seconds."""
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in handlers.items():
            signal.signal(number, before)
