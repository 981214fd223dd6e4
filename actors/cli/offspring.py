"""Processes that this one has started, directly or not, as Linux tells of them; elsewhere none are known."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

ROOT = Path("/proc")
Born = dict[int, str]  # by process: when it began, since numbers are used again


def offspring(halt: bool = False, spare: Born | None = None) -> Born:
    """All there are but those to be spared and theirs.

    With `halt` each is stopped before its own are looked for, so that none is missed.
    """
    found: Born = {}
    waiting = [pid for pid in children(os.getpid()) if pid not in (spare or {})]
    while waiting:
        pid = waiting.pop()
        if (since := born(pid)) is not None:
            found[pid] = since
            if halt:
                _tell(pid, signal.SIGSTOP)
            waiting += children(pid)
    return found


def end(spare: Born, known: Born) -> None:
    """Kill those known, as far as they are still there, and all others but those to be spared."""
    left = {pid: since for pid, since in known.items() if born(pid) == since}
    for pid in {**left, **offspring(halt=True, spare=spare)}:
        _tell(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """What a process has started itself and what still runs of that."""
    found: list[int] = []
    for file in (ROOT / str(pid) / "task").glob("*/children"):
        with suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def born(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None if it does not run (any more)."""
    try:
        state, *rest = (ROOT / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state == "Z" else rest[18]


def _tell(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
