"""Ports that have to be free, the Ray cluster that is to be found, and what is open to others."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

from actors.cli.asking import part
from actors.doctor.finding import ERROR, OK, WARNING, Finding
from dsms.errors import DsmsError
from dsms.live.setup import Setup

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANSWER = 2.0  # seconds


def network(setup: Setup, console: tuple[str, int], guarded: bool) -> Iterator[Finding]:
    """What a deployment of this setup would meet; `guarded`: whether there are tokens."""
    for place in range(setup.gateways if setup.port else 0):
        yield port("gateway", setup.host, setup.port + place, "`dsms up --port` takes another, or 0: any that is free")
    if setup.metrics:
        yield port("metrics", setup.metrics_host, setup.metrics, "`dsms up --metrics` takes another, or 0")
    yield port("console", *console, "`dsms console --port` takes another, or 0")
    yield exposure(setup, guarded)
    yield cluster()


def port(what: str, host: str, number: int, remedy: str) -> Finding:
    """Whether somebody listens there already: this system, or something else."""
    what, place = f"port of the {what}", f"{host}:{number}"
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, number), family=family).close()
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        return Finding(WARNING, what, f"{place}: {why}", f"fine if it is dsms that runs there; else {remedy}")
    return Finding(OK, what, f"{place} is free")


def exposure(setup: Setup, guarded: bool) -> Finding:
    """Who can reach the gateways, and what keeps them from doing harm."""
    if setup.host in LOOPBACK:
        return Finding(OK, "who may come", f"this machine alone ({setup.host})")
    if not guarded:
        return Finding(ERROR, "who may come", f"whoever reaches {setup.host}, without a token", "`--token-file FILE`")
    if not setup.certificate:
        return Finding(WARNING, "who may come", "tokens are asked for, but can be heard", "`--certificate`, `--key`")
    return Finding(OK, "who may come", "whoever has a token, by TLS")


def cluster() -> Finding:
    """Whether the Ray cluster that commands would go to is there."""
    what, remedy = "Ray cluster", "deploy/head starts one; `dsms up --address local` needs none"
    try:
        place = str(part("cluster").recorded())
    except DsmsError as error:
        return Finding(WARNING, what, str(error).partition(";")[0], remedy)
    host, _, number = place.rpartition(":")
    try:
        socket.create_connection((host, int(number)), ANSWER).close()
    except (OSError, ValueError, OverflowError) as error:
        return Finding(ERROR, what, f"nobody listens at {place}: {error}", f"{remedy}; deploy/stop forgets this one")
    return Finding(OK, what, f"listens at {place}; its ports are open on all interfaces: keep a firewall before them")
