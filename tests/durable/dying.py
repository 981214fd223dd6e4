"""A process that writes and says what is safe, killed at a moment."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

WRITES = ("openat", "pwrite64", "write", "writev", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir")


def acknowledged(write: Callable[[Callable[[int], None]], None], seconds: float) -> int:
    """Let a child `write`, which tells what is safe, and kill it so long after it first did; the last that it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(lambda number: os.write(writing, b"%d\n" % number) and None)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        said = [told.readline()]
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        said += told.readlines()
    os.waitpid(child, 0)
    return int([line for line in said if line.endswith(b"\n")][-1])


def killed_at(call: str, count: int, write: Callable[[Callable[[int], None]], None]) -> tuple[bool, int]:
    """Let a child `write` and be killed by its so-manieth system call of a kind; whether it was, and what it told."""
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
        said = strace.stderr.readline()
        os.write(go, b"!")
        if "attached" not in said:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise PermissionError(said)
        with os.fdopen(reading, "rb") as told:
            lines = told.readlines()
        _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), int(lines[-1]) if lines else 0
