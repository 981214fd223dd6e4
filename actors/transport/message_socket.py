"""A socket that carries whole messages."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np

from actors.transport.codec import PREFIX, Buffer, Encoder, as_bytes, decode
from dsms.data.batch import Column

SEND_BUFFER_BYTES = 1024 * 1024  # of the system; with Linux's default large batches take three times as long
READ_BYTES = 64 * 1024  # most messages arrive with one read
BUFFERS_LIMIT = 512  # of one call to the system; Linux takes 1,024
EMPTY: Column = np.empty(0, np.uint8)


class MessageSocket:
    """Sends messages from any thread and receives them in one."""

    def __init__(self, line: socket.socket) -> None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._socket = line
        self._encoder, self._sending = Encoder(), threading.Lock()
        self._unsent: deque[list[Buffer]] = deque()  # posted, for the other side to read; a thread sends them
        self._read = memoryview(bytearray(READ_BYTES))
        self._start = self._end = 0  # of the bytes received and not yet returned

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Send a message; an error leaves nothing half sent unless the connection is lost."""
        with self._sending:
            buffers = self._encoder.encode(message)
            try:
                self._send_buffers(buffers)
            except OSError:
                self.close()  # a message may be half sent
                raise

    def post(self, message: object) -> None:
        """Send what the system takes now, and let a thread send the rest: does not wait for the other side to read.

        Not for a socket on which `send` is called, too.
        """
        with self._sending:
            buffers = self._encoder.encode(message)
            if not self._unsent:
                try:
                    self._send_buffers(buffers, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    threading.Thread(target=self._send_rest, name="rest of messages", daemon=True).start()
                except OSError:
                    self.close()  # a message may be half sent
                    raise
            if buffers:
                self._unsent.append(buffers)

    def receive(self) -> Any:
        """Wait for the next message; EOFError when the other side has closed."""
        header_bytes, payload_bytes = PREFIX.unpack(self._take(PREFIX.size))
        header = bytes(self._take(header_bytes))
        payload = EMPTY if not payload_bytes else np.empty(payload_bytes, np.uint8)
        if payload_bytes:
            self._fill(as_bytes(payload))
        return decode(header, payload)

    def close(self) -> None:
        """Close the socket; a thread that waits in `receive` returns with EOFError."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _send_rest(self) -> None:
        """Send posted messages until none is left; a lost connection is noticed by who receives."""
        with self._sending:
            buffers = self._unsent[0]
        while True:
            try:
                self._send_buffers(buffers)
            except OSError:
                self.close()
                return
            with self._sending:
                self._unsent.popleft()
                if not self._unsent:
                    return
                buffers = self._unsent[0]

    def _send_buffers(self, buffers: list[Buffer], flags: int = 0) -> None:
        """Send buffers; each leaves the list when it is sent."""
        while buffers:
            part = buffers[:BUFFERS_LIMIT]
            sent = self._socket.sendmsg(part, (), flags)
            while part and sent >= len(part[0]):
                sent -= len(part.pop(0))
                del buffers[0]
            if part and sent:
                buffers[0] = memoryview(part[0])[sent:]

    def _take(self, size: int) -> memoryview:
        """Return the next bytes; they stay valid until the next call."""
        if self._end - self._start < size:
            waiting = bytes(self._read[self._start : self._end])
            if size > len(self._read):
                whole = memoryview(bytearray(size))
                self._start = self._end = 0
                whole[: len(waiting)] = waiting
                self._receive_all(whole[len(waiting) :])
                return whole
            self._read[: len(waiting)] = waiting
            self._start, self._end = 0, len(waiting)
            while self._end < size:
                self._end += self._receive_into(self._read[self._end :])
        taken = self._read[self._start : self._start + size]
        self._start += size
        return taken

    def _fill(self, target: memoryview) -> None:
        """Fill the target with the next bytes, past the buffer where it is empty."""
        ready = min(len(target), self._end - self._start)
        target[:ready] = self._read[self._start : self._start + ready]
        self._start += ready
        self._receive_all(target[ready:])

    def _receive_all(self, target: memoryview) -> None:
        while target:
            target = target[self._receive_into(target) :]

    def _receive_into(self, target: memoryview) -> int:
        count = self._socket.recv_into(target)
        if not count:
            raise EOFError("the other side has closed the connection")
        return count
