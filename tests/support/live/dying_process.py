"""Kills a process that writes and reports what is safe, after a time or at a system call."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

WRITES = ("openat", "pwrite64", "write", "writev", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir")


def kill_after(write: Callable[[Callable[[int], None]], None], seconds: float) -> int:
    """Kill a child some seconds after it first reports what is safe; returns the last report."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(lambda number: os.write(writing, b"%d\n" % number) and None)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as reports:
        lines = [reports.readline()]
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        lines += reports.readlines()
    os.waitpid(child, 0)
    return int([line for line in lines if line.endswith(b"\n")][-1])


def kill_at_syscall(call: str, count: int, write: Callable[[Callable[[int], None]], None]) -> tuple[bool, int]:
    """Kill a child at its nth system call of a kind; returns whether it was killed, and its last report."""
    going, go = os.pipe()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(going, 1)
            write(lambda number: os.write(writing, b"%d\n" % number) and None)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    inject = f"inject={call}:signal=KILL:when={count}"
    command = ["strace", "-p", str(child), "-e", f"trace={call}", "-e", inject, "-o", "/dev/null"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        attached = strace.stderr.readline()
        os.write(go, b"!")
        if "attached" not in attached:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise PermissionError(attached)
        with os.fdopen(reading, "rb") as reports:
            lines = reports.readlines()
        _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), int(lines[-1]) if lines else 0
