"""Starts and stops nodes of a Ray cluster for tests, through the scripts of deploy/."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from support.paths import ROOT


def find_free_port(first):
    """The first free port from this one on."""
    for port in range(first, first + 500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError(f"no port is free from {first} on")


def find_node_processes(folder, name="*"):
    """The processes of the nodes recorded in a run folder, of all nodes or of one."""
    sessions = {int(file.read_text().split()[0]) for file in folder.glob(f"{name}/pid")}
    return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if read_session_id(pid) in sessions}


def read_session_id(pid):
    """Which session a process belongs to; None if it has ended, reaped or not."""
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(session)


class ClusterScripts:
    """The scripts of deploy/, with a run folder and a token of their own."""

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
