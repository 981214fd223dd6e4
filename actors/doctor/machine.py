"""Room and limits: disk, memory, shared memory, open files, processes, and the clock."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from actors.doctor.finding import ERROR, GIB, OK, WARNING, Finding, least
from dsms.clock import epoch, stopwatch

SHARED = Path("/dev/shm")
STORE = 0.5  # GiB that deploy/head takes for Ray's object store
TRIES = 5
JUMP = 0.05  # seconds by which two clocks may drift apart while they are looked at
UNKEPT = 5  # what Linux says of a clock that nobody keeps right
TIMEX = 256  # bytes: more than what it fills in


def machine(folder: Path) -> Iterator[Finding]:
    """All of it; `folder` is where a plan's files go."""
    yield from disk(folder)
    yield shared_memory()
    yield memory()
    yield open_files()
    yield processes()
    yield clock()


def disk(folder: Path) -> Iterator[Finding]:
    """Where results and recordings go, and where Ray keeps its logs."""
    for what, place in (("disk", folder.resolve()), ("temporary files", Path(tempfile.gettempdir()))):
        remedy = f"make room in {place}; Ray stops starting actors on a disk that is 95 % full"
        try:
            usage = shutil.disk_usage(place)
        except OSError as error:
            yield Finding(ERROR, what, f"{place} cannot be looked at: {error.strerror}", "take another folder")
            continue
        full = 1 - usage.free / usage.total
        found = f"{usage.free / GIB:.1f} GiB free in {place} ({full:.0%} full)"
        enough = usage.free if full < 0.95 else 0
        yield least(what, enough / GIB, found, remedy, wanted=2.0, needed=0.2)


def shared_memory() -> Finding:
    """Where Ray's object store lies."""
    what, remedy = "shared memory", "in a container: --shm-size=1g; else `deploy/head --memory` takes less"
    if not SHARED.is_dir():
        return Finding(OK, what, f"there is no {SHARED}: Ray uses files instead")
    free = shutil.disk_usage(SHARED).free / GIB
    return least(what, free, f"{free:.1f} GiB free in {SHARED}", remedy, wanted=STORE)


def memory() -> Finding:
    """What is left for new processes."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 / GIB for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return Finding(OK, "memory", "not known on this system")
    remedy = "end something, or deploy with fewer --actors: each takes some 100 MB"
    return least("memory", free, f"{free:.1f} GiB available", remedy, wanted=2.0, needed=0.5)


def open_files() -> Finding:
    """Every connection and every actor takes some."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = sys.maxsize if most == resource.RLIM_INFINITY else most
    shown = "no limit" if count == sys.maxsize else f"{count} at once"
    return least("open files", count, shown, "`ulimit -n 65536` before Ray is started", wanted=4096, needed=1024)


def processes() -> Finding:
    """Ray starts a process for every actor, with dozens of threads each."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    count = sys.maxsize if most == resource.RLIM_INFINITY else most
    shown = "no limit" if count == sys.maxsize else f"{count} processes and threads"
    return least("processes", count, shown, "`ulimit -u 16384` before Ray is started", wanted=4096, needed=1024)


def clock() -> Finding:
    """Whether instants of this machine mean the same as those of others, and go on evenly."""
    newest = max((file.stat().st_mtime for file in Path(__file__).parent.glob("*.py")), default=0.0)
    if epoch() < newest - 1:
        return Finding(ERROR, "clock", "it is earlier than this program was installed", "set the clock: `timedatectl`")
    if (apart := _drift()) > JUMP:
        return Finding(WARNING, "clock", f"it has jumped by {apart:.3f} s just now", "let NTP slew it, not step it")
    if not _kept():
        remedy = "`timedatectl set-ntp true`, or chrony; on one machine alone it does not matter"
        return Finding(WARNING, "clock", "nobody keeps it right (NTP)", remedy)
    return Finding(OK, "clock", "even, and as far as the system knows right")


def _drift() -> float:
    """By how much the time of day and a clock that never jumps have come apart; the least of some tries."""
    found = []
    for _ in range(TRIES):
        day, steady = epoch(), stopwatch()
        os.sched_yield() if hasattr(os, "sched_yield") else None
        found.append(abs((epoch() - day) - (stopwatch() - steady)))
    return min(found)


def _kept() -> bool:
    """Whether Linux takes its clock for right; elsewhere that is not known."""
    if sys.platform != "linux":
        return True
    try:
        return int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX))) != UNKEPT
    except (OSError, AttributeError):
        return True
