"""Finds and kills the processes that this process has started, directly or indirectly."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import psutil

Processes = set[psutil.Process]  # equal by id and start time, so that a reused id is another process


def find_descendants(suspend: bool = False, spare: Collection[psutil.Process] = ()) -> Processes:
    """All live descendants but the processes in `spare` and their descendants.

    With `suspend` each process is stopped before its children are listed, so that it can start no others.
    """
    found: Processes = set()
    waiting = [child for child in psutil.Process().children() if child not in spare]
    while waiting:
        process = waiting.pop()
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
                if suspend:
                    process.suspend()
                waiting += process.children()
    return found


def kill_descendants(spare: Collection[psutil.Process], known: Collection[psutil.Process]) -> None:
    """Kill all descendants but the processes in `spare`, and all processes in `known`, which may be orphans."""
    for process in {*known, *find_descendants(suspend=True, spare=spare)}:
        with suppress(psutil.NoSuchProcess):
            process.kill()
