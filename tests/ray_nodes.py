"""Nodes of a Ray cluster of our own, by the scripts of deploy/."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def unused(first):
    """A port from this on at which nobody listens."""
    for port in range(first, first + 500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError(f"no port is free from {first} on")


def living(folder, name="*"):
    """The processes of the nodes that are written down in a folder, all of them or those of one."""
    sessions = {int(file.read_text().split()[0]) for file in folder.glob(f"{name}/pid")}
    return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if session_of(pid) in sessions}


def session_of(pid):
    """Which session a process belongs to; None if it has ended, whether or not anybody has taken note of that."""
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(session)


class Nodes:
    """What the scripts of deploy/ do with a run folder and a token of our own."""

    def __init__(self, folder):
        self.run = folder / "run"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        self.environment = kept | {
            "DSMS_RUN": str(self.run),
            "DSMS_RAY_TOKEN": str(folder / "token"),
            "DSMS_RAY": str(Path(sys.executable).parent / "ray"),
            "PYTHONPATH": str(ROOT),
        }

    def __call__(self, script, *arguments, timeout=90):
        return self.said([ROOT / "deploy" / script, *arguments], timeout)

    def said(self, command, timeout=120, given=None, **environment):
        done = subprocess.run(
            command,
            env=self.environment | environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
