"""Starts commands that start a Ray, sends them signals, and finds what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

MARK = "DSMS_TEST_RUN"  # in the environment of all processes of a run, to find them


class MarkedCommand:
    """A command with a Ray of its own, in a session of its own; all its processes carry a mark."""

    def __init__(self, code: str, *words: str) -> None:
        self._mark = uuid.uuid4().hex
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            env={**environment, MARK: self._mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def left(self) -> list[str]:
        """The command lines of its processes that still run."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self._mark}".encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120])
            except OSError:  # it has ended meanwhile
                continue
        return found

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Send Ctrl-C, or another signal, to the process group."""
        os.killpg(self.process.pid, number)

    def until(self, said: str) -> None:
        """Wait for a line on standard error."""
        heard = []
        for line in self.process.stderr:
            heard.append(line)
            if said in line:
                return
        pytest.fail(f"it ended with {self.process.wait()} before it said {said!r}: {''.join(heard)}")
