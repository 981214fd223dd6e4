"""Ctrl-C and TERM for commands that start processes: one ends the command, and no further one disturbs the ending."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actors.cli.offspring import end, offspring


@contextmanager
def stoppable() -> Iterator[None]:
    """TERM meanwhile is as good as Ctrl-C."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
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


@contextmanager
def leaving(cluster: Any) -> Iterator[None]:
    """Leave the cluster afterwards; if it is one of our own, nothing of it stays, however far its start had come."""
    before = offspring()
    try:
        yield
    finally:
        with undisturbed():
            known = {pid: since for pid, since in offspring().items() if pid not in before}
            cluster.disconnect()
            end(before, known)
