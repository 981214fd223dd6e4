"""Watch and control a deployment in the browser: plan, memory, latency, freshness and policy; Ctrl-C ends it.

All who can reach the page may look, unless --token-file has tokens for `read`: then the page asks for one of them. To
change the policy, QoS, weights or pause, the page asks for a token for `control`; without --token-file it is read-only.
`dsms status --help` explains the figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from actors.cli.up import add_security_options
from actors.control.client import ControlClient, add_common_options, join_cluster
from dsms.cli.arguments import parse_nonnegative_int
from dsms.cli.signals import wait_for_signal
from dsms.errors import DsmsError
from dsms.net.certificate import Certificate
from dsms.net.tokens import Tokens

HOST, PORT = "127.0.0.1", 7480


def options(parser: argparse.ArgumentParser) -> None:
    add_common_options(parser)
    parser.add_argument("--host", metavar="H", default=HOST, help=f"address to serve the page at (default: {HOST})")
    parser.add_argument(
        "--port",
        type=parse_nonnegative_int,
        metavar="P",
        default=PORT,
        help=f"port of the page; 0: any free port (default: {PORT})",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help="tokens that the page asks for before it shows or changes anything",
    )
    add_security_options(parser)


def run(given: argparse.Namespace) -> int:
    tokens = None if given.token_file is None else Tokens.read(given.token_file)
    certificate = Certificate.of(str(given.certificate or ""), str(given.key or ""))
    server = import_console()
    with join_cluster(given) as cluster:
        finder = Finder(cluster, given.name, given.address)
        finder.find()  # fails here if there is no deployment; after this, an ended deployment may restart
        try:
            with server.serve(finder.find, given.host, given.port, tokens, certificate) as url:
                print(
                    f"console of {given.name}: {url}" + ("" if tokens else " (read-only: no --token-file)"), flush=True
                )
                wait_for_signal()
        except KeyboardInterrupt:
            return 0
    return 0


def import_console() -> Any:
    """Import the page's server, which loads NiceGUI."""
    try:
        from actors.console import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("nicegui", "uvicorn", "fastapi"):
            raise
        raise DsmsError("the console needs NiceGUI, which is not installed: install dsms[console]") from None
    return server


class Finder:
    """Finds a deployment by name; reconnects to its cluster after an outage."""

    def __init__(self, cluster: Any, name: str, address: str) -> None:
        self._cluster, self._name, self._address = cluster, name, address
        self._is_disconnected = False  # whether the cluster was unreachable at the last attempt

    def find(self) -> ControlClient:
        """A client of the deployment as it is now."""
        if self._is_disconnected:
            self._cluster.connect(self._address)
            self._is_disconnected = False
        try:
            self._cluster.check_reachable()
        except DsmsError:
            self._is_disconnected = True
            self._cluster.disconnect()
            raise
        return ControlClient(self._name, self._cluster.get_deployment(self._name))
