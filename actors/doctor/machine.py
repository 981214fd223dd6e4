"""Checks of this machine: disk, memory, shared memory, limits of open files and processes, and the clock."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from actors.doctor.finding import ERROR, GIB, OK, WARNING, Finding, check_minimum
from dsms.clock import monotonic_s, wall_time_s

SHM_PATH = Path("/dev/shm")
OBJECT_STORE_GIB = 0.5  # of Ray's object store as deploy/head starts it
DRIFT_SAMPLES = 5
CLOCK_DRIFT_LIMIT_S = 0.05  # by which the wall clock may jump during the check
TIME_ERROR = 5  # adjtimex: the clock is not synchronized
TIMEX_BYTES = 256  # more than struct timex needs


def check_machine(folder: Path) -> Iterator[Finding]:
    """All checks of this machine; `folder` is the plan's folder."""
    yield from check_disk(folder)
    yield check_shared_memory()
    yield check_memory()
    yield check_open_files()
    yield check_process_limit()
    yield check_clock()


def check_disk(folder: Path) -> Iterator[Finding]:
    """Free space for results and recordings, and for Ray's logs."""
    for what, place in (("disk", folder.resolve()), ("temporary files", Path(tempfile.gettempdir()))):
        remedy = f"free space in {place}; Ray starts no actors on a disk that is 95 % full"
        try:
            usage = shutil.disk_usage(place)
        except OSError as error:
            yield Finding(ERROR, what, f"{place} cannot be read: {error.strerror}", "use another folder")
            continue
        full = 1 - usage.free / usage.total
        found = f"{usage.free / GIB:.1f} GiB free in {place} ({full:.0%} full)"
        enough = usage.free if full < 0.95 else 0
        yield check_minimum(what, enough / GIB, found, remedy, recommended=2.0, needed=0.2)


def check_shared_memory() -> Finding:
    """Free shared memory, which holds Ray's object store."""
    what, remedy = (
        "shared memory",
        "in a container: --shm-size=1g; else give `deploy/head --memory` less",
    )
    if not SHM_PATH.is_dir():
        return Finding(OK, what, f"{SHM_PATH} does not exist: Ray uses files instead")
    free = shutil.disk_usage(SHM_PATH).free / GIB
    return check_minimum(what, free, f"{free:.1f} GiB free in {SHM_PATH}", remedy, recommended=OBJECT_STORE_GIB)


def check_memory() -> Finding:
    """Memory that is available to new processes."""
    try:
        import psutil  # comes with the extra `ray`; the doctor runs without it
    except ModuleNotFoundError:
        return Finding(OK, "memory", "unknown: psutil is not installed")
    free = psutil.virtual_memory().available / GIB
    remedy = "end other processes, or deploy with fewer --actors: each uses some 100 MB"
    return check_minimum("memory", free, f"{free:.1f} GiB available", remedy, recommended=2.0, needed=0.5)


def check_open_files() -> Finding:
    """The limit of open files: every connection and every actor uses some."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = sys.maxsize if most == resource.RLIM_INFINITY else most
    shown = "no limit" if count == sys.maxsize else f"{count} at once"
    return check_minimum(
        "open files", count, shown, "`ulimit -n 65536` before Ray is started", recommended=4096, needed=1024
    )


def check_process_limit() -> Finding:
    """The limit of processes: Ray starts one for every actor, with dozens of threads each."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    count = sys.maxsize if most == resource.RLIM_INFINITY else most
    shown = "no limit" if count == sys.maxsize else f"{count} processes and threads"
    return check_minimum(
        "processes", count, shown, "`ulimit -u 16384` before Ray is started", recommended=4096, needed=1024
    )


def check_clock() -> Finding:
    """Whether the wall clock is synchronized and does not jump."""
    newest = max((file.stat().st_mtime for file in Path(__file__).parent.glob("*.py")), default=0.0)
    if wall_time_s() < newest - 1:
        return Finding(ERROR, "clock", "it is earlier than this installation", "set the clock: `timedatectl`")
    if (apart := _measure_drift()) > CLOCK_DRIFT_LIMIT_S:
        return Finding(WARNING, "clock", f"it jumped by {apart:.3f} s during the check", "let NTP slew it, not step it")
    if not _is_clock_synchronized():
        remedy = "`timedatectl set-ntp true`, or chrony; a single machine does not need it"
        return Finding(WARNING, "clock", "it is not synchronized (NTP)", remedy)
    return Finding(OK, "clock", "synchronized, and it does not jump")


def _measure_drift() -> float:
    """The least difference, over some samples, between the wall clock's and the monotonic clock's advance."""
    drifts = []
    for _ in range(DRIFT_SAMPLES):
        day, steady = wall_time_s(), monotonic_s()
        os.sched_yield() if hasattr(os, "sched_yield") else None
        drifts.append(abs((wall_time_s() - day) - (monotonic_s() - steady)))
    return min(drifts)


def _is_clock_synchronized() -> bool:
    """Whether Linux reports a synchronized clock; True on other systems, where it is unknown."""
    if sys.platform != "linux":
        return True
    try:
        return int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))) != TIME_ERROR
    except (OSError, AttributeError):
        return True
