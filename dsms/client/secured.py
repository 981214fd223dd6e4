"""TLS over a connected socket, for one thread that reads while others write.

A TLS connection is one state for both ways, which threads must not touch at once, and Python's own sockets let them. So
the state is kept apart from the socket: it is locked for moments only, never while bytes are waited for.
"""

from __future__ import annotations

import socket
import ssl
import threading

CHUNK = 1024 * 1024  # bytes encrypted at a time


class Secured:
    """As much of a socket as a link needs; reading and writing go on at the same time."""

    def __init__(self, plain: socket.socket, trust: ssl.SSLContext, host: str) -> None:
        self._socket = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trust.wrap_bio(self._in, self._out, server_hostname=host)
        self._state = threading.Lock()  # of what is above
        self._order = threading.Lock()  # what is encrypted first is sent first; taken before the other, where both are
        try:
            self._shake_hands()
        except BaseException:
            plain.close()
            raise

    def recv(self, size: int) -> bytes:
        """What has come, once something has; nothing at the end."""
        while True:
            with self._state:
                try:
                    if data := self._tls.read(size):
                        return data
                    return b""
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return b""
                replies = self._out.pending
            if replies:
                self._send()
            came = self._socket.recv(size)
            with self._state:
                self._in.write(came) if came else self._in.write_eof()

    def sendall(self, data: bytes) -> None:
        """Send all of it, as it is."""
        view = memoryview(data)
        for first in range(0, len(view), CHUNK):
            self._send(view[first : first + CHUNK])

    def settimeout(self, seconds: float | None) -> None:
        """As of a socket."""
        self._socket.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        """Hang up, without a word: frames say for themselves where they end."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    def _send(self, data: memoryview | None = None) -> None:
        with self._order:
            with self._state:
                if data is not None:
                    self._tls.write(data)
                out = self._out.read()
            self._socket.sendall(out)

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                self._send()
                return
            except ssl.SSLWantReadError:
                self._send()
            except ssl.SSLError:
                self._send()  # the other side is told why, too
                raise
            if not (came := self._socket.recv(CHUNK)):
                raise ConnectionError("the connection was closed before TLS was agreed on")
            self._in.write(came)
