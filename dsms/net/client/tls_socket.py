"""TLS over a connected socket, safe for one thread that reads while others write.

Both directions of a TLS connection share one state, which threads must not use at once; Python's SSL sockets do not
prevent that. This one keeps the state apart from the socket and locks it only briefly, never while it waits for bytes.
"""

from __future__ import annotations

import socket
import ssl
import threading

ENCRYPT_CHUNK_BYTES = 1024 * 1024


class TlsSocket:
    """The part of a socket's interface that `Connection` uses; one thread may read while others write."""

    def __init__(self, plain: socket.socket, trust: ssl.SSLContext, host: str) -> None:
        self._socket = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trust.wrap_bio(self._in, self._out, server_hostname=host)
        self._state = threading.Lock()  # guards the three above
        self._order = threading.Lock()  # sends in the order of encryption; acquired before `_state`
        try:
            self._shake_hands()
        except BaseException:
            plain.close()
            raise

    def recv(self, size: int) -> bytes:
        """Wait for bytes and return them; empty at the end of the connection."""
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
            received = self._socket.recv(size)
            with self._state:
                self._in.write(received) if received else self._in.write_eof()

    def sendall(self, data: bytes) -> None:
        """Encrypt and send all of `data`."""
        view = memoryview(data)
        for first in range(0, len(view), ENCRYPT_CHUNK_BYTES):
            self._send(view[first : first + ENCRYPT_CHUNK_BYTES])

    def settimeout(self, seconds: float | None) -> None:
        """Limit how long reads and writes may block."""
        self._socket.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        """Shut the socket down without a TLS close: frames carry their own length."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
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
                self._send()  # the alert that tells the server why
                raise
            if not (received := self._socket.recv(ENCRYPT_CHUNK_BYTES)):
                raise ConnectionError("the gateway closed the connection during the TLS handshake")
            self._in.write(received)
