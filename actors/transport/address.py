"""The address of an actor's socket, and how a process on the same machine connects to it."""

from __future__ import annotations

import functools
import os
import socket
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from actors.transport.message_socket import MessageSocket
from dsms.errors import Cause, OperatorError

CONNECT_TIMEOUT_S = 10.0
KEY_BYTES = 32
GREETING_BYTES = KEY_BYTES + 1
SOCKET_LOSS_ERRORS = (EOFError, OSError)  # of a socket whose other end is closed; elsewhere they mean other things


class Role(bytes, Enum):
    """What a caller says after the key: how it uses the connection."""

    CALLS = b"c"  # calls of methods, with answers
    SCHEDULER = b"s"  # grants of the scheduler; reports return on this connection
    PEER = b"p"  # grants that another host passes on


class Address(NamedTuple):
    """Where an actor listens, and the key that a caller has to show. Only calls through Ray pass addresses on."""

    machine: str
    name: str  # of a socket in Linux's abstract namespace: nothing of it is left when the process ends
    key: bytes
    methods: tuple[str, ...] = ()  # that may be called here

    @property
    def is_near(self) -> bool:
        """Whether this process can connect to it."""
        return self.machine == machine_id()


@functools.cache
def machine_id() -> str:
    """What processes have in common that can connect to each other's local sockets: the kernel and the network."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    network = Path("/proc/self/ns/net")
    if not boot.exists() or not network.exists():
        return f"process {os.getpid()}"  # not Linux: no local sockets, all calls go through Ray
    return f"{boot.read_text().strip()} {os.readlink(network)}"


def connect(address: Address, role: Role) -> MessageSocket:
    """Connect to an actor on this machine and show its key."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(CONNECT_TIMEOUT_S)
        line.connect(f"\0{address.name}")
        line.sendall(address.key + role.value)
        line.settimeout(None)
    except OSError:
        line.close()
        raise
    return MessageSocket(line)


def peer_gone(error: BaseException | str) -> OperatorError:
    """The error of a call whose connection is lost, or refused: the process at the other end has ended."""
    text = str(error).strip() or type(error).__name__
    return OperatorError(f"a process is gone with the operators in it: {text}", Cause.PROCESS_GONE)
