"""Checks of the network: free ports, access from other machines, and the Ray cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

from actors.control.client import import_runtime
from actors.doctor.finding import ERROR, OK, WARNING, Finding
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONNECT_TIMEOUT_S = 2.0


def check_network(setup: LiveConfig, console: tuple[str, int], guarded: bool) -> Iterator[Finding]:
    """All checks for a deployment of this configuration; `guarded`: whether there are tokens."""
    for place in range(setup.gateways if setup.port else 0):
        yield check_port("gateway", setup.host, setup.port + place, "choose another with `dsms up --port`, or 0")
    if setup.metrics:
        yield check_port("metrics", setup.metrics_host, setup.metrics, "choose another with `dsms up --metrics`, or 0")
    yield check_port("console", *console, "choose another with `dsms console --port`, or 0")
    yield check_exposure(setup, guarded)
    yield check_cluster()


def check_port(what: str, host: str, number: int, remedy: str) -> Finding:
    """Whether a port is free."""
    what, place = f"port of the {what}", f"{host}:{number}"
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, number), family=family).close()
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        return Finding(WARNING, what, f"{place}: {why}", f"no problem if dsms listens there; else {remedy}")
    return Finding(OK, what, f"{place} is free")


def check_exposure(setup: LiveConfig, guarded: bool) -> Finding:
    """Which clients can reach the gateways, and whether they need tokens and TLS."""
    if setup.host in LOOPBACK:
        return Finding(OK, "access", f"from this machine only ({setup.host})")
    if not guarded:
        return Finding(ERROR, "access", f"from all that reach {setup.host}, without a token", "`--token-file FILE`")
    if not setup.certificate:
        return Finding(WARNING, "access", "with a token, but tokens travel unencrypted", "`--certificate`, `--key`")
    return Finding(OK, "access", "with a token, by TLS")


def check_cluster() -> Finding:
    """Whether the Ray cluster that commands connect to listens."""
    what, remedy = "Ray cluster", "deploy/head starts one; `dsms up --address local` needs none"
    try:
        place = str(import_runtime("cluster.cluster").find_address())
    except DsmsError as error:
        return Finding(WARNING, what, str(error).partition(";")[0], remedy)
    host, _, number = place.rpartition(":")
    try:
        socket.create_connection((host, int(number)), CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        return Finding(ERROR, what, f"no process listens at {place}: {error}", f"{remedy}; deploy/stop forgets it")
    return Finding(OK, what, f"listens at {place}; its ports are open on all interfaces: protect them by a firewall")
