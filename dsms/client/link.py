"""One TCP connection from a client to a gateway: frames out, messages in."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress

from dsms.client.secured import Secured
from dsms.errors import DsmsError
from dsms.wire import Ack, Decoder, Error, Hello, Message, Schemas, WireError, encoded

# A host that is gone without a word is noticed after half a minute, where the system lets us say so.
SILENCE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
KEEPALIVE = [(getattr(socket, name), value) for name, value in SILENCE.items() if hasattr(socket, name)]
ALERT = b"\x15\x03"  # how TLS begins to say that this is none
CHUNK = 1024 * 1024  # bytes read at a time


class RejectedError(DsmsError):
    """The other side said that it will not go on with us, and why: trying again is of no use."""


class Link:
    """A connected socket; OSError from any method means that it is broken."""

    def __init__(self, host: str, port: int, timeout: float, trust: ssl.SSLContext | None = None) -> None:
        made = socket.create_connection((host, port), timeout)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        watch(made)
        self._socket: socket.socket | Secured = made if trust is None else Secured(made, trust, host)
        self._decoder = Decoder(learns=True)

    def greet(self, producer: str, token: str) -> tuple[Schemas, int, dict[int, str]]:
        """Say who we are; answers the columns of streams and queries, the last of our frames known, those refused."""
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
        raise ConnectionError("the connection was closed before it was answered")

    def messages(self) -> Iterator[Message]:
        """What comes, until the other side closes the connection."""
        while data := self._socket.recv(CHUNK):
            for message in self._decoder.feed(data):
                if isinstance(message, WireError):
                    hint = "; it speaks TLS: `ca` says whom to trust" if data[:2] == ALERT else ""
                    raise RejectedError(f"what came cannot be read: {message.reason}{hint}")
                yield message

    def send(self, message: Message) -> None:
        """Say something."""
        self.write(b"".join(encoded(message)))

    def write(self, frame: bytes) -> None:
        """Send a frame; one that is cut off in the middle, by whatever, ends the connection."""
        try:
            self._socket.sendall(frame)
        except BaseException:
            self.cut()
            raise

    def cut(self) -> None:
        """End the connection at once; whoever reads from it finds out."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the socket back."""
        self.cut()
        self._socket.close()


def watch(connected: socket.socket) -> None:
    """Have it noticed when the other side is gone without a word."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
