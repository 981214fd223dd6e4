"""What the processes of a Ray that this process has started take: memory of their own, and open files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
OURS = ("ray::Deployment", "ray::Gateway", "ray::Host", "ray::Outlet", "ray::Scheduler")  # as Ray calls processes


class Taken(NamedTuple):
    """What one process takes."""

    name: str  # of its actor, and its id
    memory: int  # bytes that are resident, without those that it shares with others
    files: int


def taken() -> dict[int, Taken]:
    """By process id, all processes below this one that are part of a deployment."""
    return {process: found for process in below() if (found := _looked(process))}


def below() -> dict[int, int]:
    """All processes below this one, each with its parent."""
    parents = {int(each.name): _parent(each) for each in PROC.iterdir() if each.name.isdigit()}
    return {process: parent for process, parent in parents.items() if _below(process, parents)}


def memory(processes: dict[int, Taken]) -> int:
    """Of all of them together."""
    return sum(one.memory for one in processes.values())


def files(processes: dict[int, Taken]) -> int:
    """Open in all of them together."""
    return sum(one.files for one in processes.values())


def _below(process: int, parents: dict[int, int]) -> bool:
    while process in parents:
        process = parents[process]
        if process == os.getpid():
            return True
    return False


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _looked(process: int) -> Taken | None:
    folder = PROC / str(process)
    try:
        name = (folder / "cmdline").read_bytes().split(b"\0")[0].decode()
        if not name.startswith(OURS):
            return None
        _, resident, shared, *_ = map(int, (folder / "statm").read_text().split())
        actor, files = name.split("::")[1].partition(".")[0], len(list((folder / "fd").iterdir()))
        return Taken(f"{actor} {process}", (resident - shared) * PAGE, files)
    except (FileNotFoundError, ProcessLookupError):  # it has just gone
        return None
