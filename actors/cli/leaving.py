"""Leaving a Ray cluster behind: what a command has started there does not outlive it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actors.cli.offspring import end, offspring
from dsms.cli.stopping import undisturbed


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
