"""Watch a running system in the browser: its plan, memory, latency, freshness and who decides; Ctrl-C ends it.

Whoever can reach the page may look, unless there are tokens for `read` in --token-file: then one of them has to be
shown first. To change anything there (the policy, QoS, weights, pause) one has to show one for `control`; without that
option nobody can. `dsms status --help` explains the figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from threading import Event
from typing import Any

from actors.cli.asking import System, common, joined
from actors.cli.up import secure
from dsms.certificate import Certificate
from dsms.cli.arguments import whole
from dsms.cli.stopping import stoppable
from dsms.errors import DsmsError
from dsms.tokens import Tokens

HOST, PORT = "127.0.0.1", 7480


def options(parser: argparse.ArgumentParser) -> None:
    common(parser)
    parser.add_argument("--host", metavar="H", default=HOST, help=f"address to serve the page at (default: {HOST})")
    parser.add_argument(
        "--port", type=whole, metavar="P", default=PORT, help=f"of the page; 0: any that is free (default: {PORT})"
    )
    parser.add_argument(
        "--token-file", metavar="FILE", type=Path, help="what the page asks for before it lets anything be changed"
    )
    secure(parser)


def run(given: argparse.Namespace) -> int:
    tokens = None if given.token_file is None else Tokens.read(given.token_file)
    certificate = Certificate.of(str(given.certificate or ""), str(given.key or ""))
    server = parts()
    with stoppable(), joined(given) as cluster:
        found = Finder(cluster, given.name, given.address)
        found.system()  # that there is none is said here, not on the page; one that goes later may come back
        try:
            with server.served(found.system, given.host, given.port, tokens, certificate) as url:
                print(
                    f"console of {given.name}: {url}" + ("" if tokens else " (read-only: no --token-file)"), flush=True
                )
                Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0


def parts() -> Any:
    """What serves the page; it loads NiceGUI."""
    try:
        from actors.console import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("nicegui", "uvicorn", "fastapi"):
            raise
        raise DsmsError("the console needs NiceGUI, which is not installed: install dsms[console]") from None
    return server


class Finder:
    """Finds the system by its name, and the cluster too where that has gone and come back."""

    def __init__(self, cluster: Any, name: str, address: str) -> None:
        self._cluster, self._name, self._address = cluster, name, address
        self._left = False  # whether the cluster was gone when it was looked for last

    def system(self) -> System:
        """The system as it is now."""
        if self._left:
            self._cluster.connect(self._address)
            self._left = False
        try:
            self._cluster.reachable()
        except DsmsError:
            self._left = True
            self._cluster.disconnect()
            raise
        return System(self._name, self._cluster.deployment(self._name))
