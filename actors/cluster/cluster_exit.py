"""Leaves a Ray cluster when a command ends, and kills the Ray processes that the command has started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from actors.cluster.kill_descendants import find_descendants, kill_descendants
from dsms.cli.signals import ignore_signals


class Disconnectable(Protocol):
    """A connection to a cluster."""

    def disconnect(self) -> None:
        """Leave the cluster."""


@contextmanager
def leave_cluster_on_exit(cluster: Disconnectable) -> Iterator[None]:
    """Leave the cluster afterwards; a private one is killed, even if it has only half started."""
    before = find_descendants()
    try:
        yield
    finally:
        with ignore_signals():
            started = find_descendants() - before
            cluster.disconnect()
            kill_descendants(before, started)
