"""Starts a Ray cluster for chaos: a head without budgets, and two workers, one of which is a stand-by."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from support.live.ray_nodes import ClusterScripts, find_free_port, find_node_processes

from actors.cluster import cluster

MEMORY = "400"  # MiB of each node's object store: checkpoints lie there until they are written
HEAD, PORTS = (
    "22000",
    {"worker-1": "27000", "worker-2": "34000"},
)  # the first port of each node; no other test uses them

ACTOR = "ray::"  # how the titles of processes begin that are actors


class WorkerNodes:
    """Worker nodes that can be killed: a killed node restarts while the other one runs the domain."""

    def __init__(self, folder: Path) -> None:
        self._nodes = ClusterScripts(folder)
        self._port = str(find_free_port(6400))
        self._starting: threading.Thread | None = None

    def start(self) -> None:
        """Bring all nodes up, and join their cluster."""
        self._nodes("head", "--port", self._port, "--ports", HEAD, "--budgets", "0", "--memory", MEMORY)
        for name in PORTS:
            self._join(name)
        os.environ.update({key: self._nodes.environment[key] for key in ("DSMS_RUN", "DSMS_RAY_TOKEN", "PYTHONPATH")})
        cluster.connect("auto", timeout=60)

    def kill(self, process: int, pause: float) -> None:
        """SIGKILL for all processes of the node that this one runs on: actors, and a moment later Ray's own."""
        self.settle()
        session = os.getsid(process)
        (name,) = [name for name in PORTS if self._session(name) == session]
        victims = find_node_processes(self._nodes.run, name)
        actors = {victim for victim in victims if _title(victim).startswith(ACTOR)}
        for group in (actors, victims - actors):
            for victim in group:
                with suppress(ProcessLookupError):  # it has ended with another
                    os.kill(victim, signal.SIGKILL)
            time.sleep(pause)
        self._starting = threading.Thread(target=self._again, args=(name,))
        self._starting.start()

    def settle(self) -> None:
        """Wait until all nodes are up."""
        if self._starting is not None:
            self._starting.join()

    def close(self) -> None:
        """End all nodes."""
        self.settle()
        cluster.disconnect()
        self._nodes("stop")

    def _again(self, name: str) -> None:
        self._nodes("stop", name)  # takes what it has left behind away
        self._join(name)

    def _join(self, name: str) -> None:
        address = f"127.0.0.1:{self._port}"
        self._nodes("worker", address, "--ports", PORTS[name], "--budgets", "1", "--memory", MEMORY, "--name", name)

    def _session(self, name: str) -> int:
        return int((self._nodes.run / name / "pid").read_text().split()[0])


def _title(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
