"""One TCP connection from a client to a gateway: writes frames, reads messages."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress

from dsms.errors import DsmsError
from dsms.net.client.tls_socket import TlsSocket
from dsms.net.wire import Ack, Decoder, Error, Hello, Message, Schemas, WireError, encode

# The kernel detects a host that vanished after half a minute, if the platform has these options.
KEEPALIVE_SETTINGS = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
KEEPALIVE_OPTIONS = [
    (getattr(socket, name), value) for name, value in KEEPALIVE_SETTINGS.items() if hasattr(socket, name)
]
TLS_ALERT_PREFIX = b"\x15\x03"  # first bytes of a TLS alert: the gateway expected TLS
READ_CHUNK_BYTES = 1024 * 1024


class RejectedError(DsmsError):
    """The gateway closed the connection with a reason: retrying would not help."""


class Connection:
    """A connected socket; an OSError from any method means that the connection is broken."""

    def __init__(self, host: str, port: int, timeout: float, trust: ssl.SSLContext | None = None) -> None:
        plain = socket.create_connection((host, port), timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        enable_keepalive(plain)
        self._socket: socket.socket | TlsSocket = plain if trust is None else TlsSocket(plain, trust, host)
        self._decoder = Decoder(learns=True)

    def greet(self, producer: str, token: str) -> tuple[Schemas, int, dict[int, str]]:
        """Send hello; return the schemas, the last acknowledged sequence, and the refused frames with their reasons."""
        refused: dict[int, str] = {}
        self.send(Hello(producer, token))
        for message in self.messages():
            if isinstance(message, Ack):
                self._socket.settimeout(None)
                return Schemas(dict(self._decoder.streams), dict(self._decoder.queries)), message.sequence, refused
            if isinstance(message, Error) and message.sequence is not None:
                refused[message.sequence] = message.reason
            elif isinstance(message, Error):
                raise RejectedError(message.reason)
        raise ConnectionError("the gateway closed the connection before it answered hello")

    def messages(self) -> Iterator[Message]:
        """Yield messages until the gateway closes the connection."""
        while data := self._socket.recv(READ_CHUNK_BYTES):
            for message in self._decoder.feed(data):
                if isinstance(message, WireError):
                    hint = "; the gateway uses TLS: pass `ca`" if data[:2] == TLS_ALERT_PREFIX else ""
                    raise RejectedError(f"cannot read the gateway's answer: {message.reason}{hint}")
                yield message

    def send(self, message: Message) -> None:
        """Send a message."""
        self.write(b"".join(encode(message)))

    def write(self, frame: bytes) -> None:
        """Send a frame; any error cuts the connection, because part of the frame may be sent."""
        try:
            self._socket.sendall(frame)
        except BaseException:
            self.cut()
            raise

    def cut(self) -> None:
        """Shut the connection down at once; a thread that reads from it sees its end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Shut the connection down and close its socket."""
        self.cut()
        self._socket.close()


def enable_keepalive(connected: socket.socket) -> None:
    """Make the kernel detect a peer that vanished without closing the connection."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE_OPTIONS:
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
