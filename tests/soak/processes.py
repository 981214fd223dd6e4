"""Measures the memory and the open files of the processes of a Ray that this process has started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
DEPLOYMENT_PROCESS_TITLES = (
    "ray::Deployment",
    "ray::Gateway",
    "ray::Host",
    "ray::ResultHub",
    "ray::Scheduler",
)  # as Ray titles them


class ProcessUsage(NamedTuple):
    """What one process takes."""

    name: str  # of its actor, and its id
    memory: int  # resident bytes that no other process shares
    files: int


def measure_processes() -> dict[int, ProcessUsage]:
    """By process id, all processes below this one that are part of a deployment."""
    return {process: found for process in list_descendants() if (found := _measure(process))}


def list_descendants() -> dict[int, int]:
    """All processes below this one, each with its parent."""
    parents = {int(each.name): _read_parent(each) for each in PROC.iterdir() if each.name.isdigit()}
    return {process: parent for process, parent in parents.items() if _is_descendant(process, parents)}


def sum_memory(processes: dict[int, ProcessUsage]) -> int:
    """Of all of them together."""
    return sum(one.memory for one in processes.values())


def sum_files(processes: dict[int, ProcessUsage]) -> int:
    """Open in all of them together."""
    return sum(one.files for one in processes.values())


def _is_descendant(process: int, parents: dict[int, int]) -> bool:
    while process in parents:
        process = parents[process]
        if process == os.getpid():
            return True
    return False


def _read_parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _measure(process: int) -> ProcessUsage | None:
    folder = PROC / str(process)
    try:
        name = (folder / "cmdline").read_bytes().split(b"\0")[0].decode()
        if not name.startswith(DEPLOYMENT_PROCESS_TITLES):
            return None
        _, resident, shared, *_ = map(int, (folder / "statm").read_text().split())
        actor, files = name.split("::")[1].partition(".")[0], len(list((folder / "fd").iterdir()))
        return ProcessUsage(f"{actor} {process}", (resident - shared) * PAGE_BYTES, files)
    except (FileNotFoundError, ProcessLookupError):  # it has just gone
        return None
