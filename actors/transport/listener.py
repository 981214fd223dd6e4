"""Listens for callers of one actor: checks their keys, then serves each connection in a thread of its own."""

from __future__ import annotations

import hmac
import logging
import secrets
import selectors
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from actors.transport.address import GREETING_BYTES, KEY_BYTES, SOCKET_LOSS_ERRORS, Address, Role, machine_id
from actors.transport.message_socket import MessageSocket

log = logging.getLogger("dsms")
ACCEPT_RETRY_S = 0.1  # after a caller could not be accepted: the process has too many open files
STRANGERS_LIMIT = 64  # connections that have not shown the key yet; the oldest is closed for a new one
Connected = Callable[[MessageSocket], None]  # serves a connection until it is lost


class Listener:
    """Accepts connections on a local socket.

    A call names a method of `methods`. Calls of one connection are carried out in order; one that returns a future is
    answered when that is done, and the next call does not wait for it.
    """

    def __init__(
        self, methods: dict[str, Callable[..., object]] | None = None, roles: dict[Role, Connected] | None = None
    ) -> None:
        self._methods = methods or {}
        self._roles = {Role.CALLS: self._serve_calls, **(roles or {})}
        name, key = f"dsms-{secrets.token_hex(8)}", secrets.token_bytes(KEY_BYTES)
        self.address = Address(machine_id(), name, key, tuple(self._methods))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(f"\0{name}")
        self._socket.listen(128)
        self._socket.setblocking(False)
        self._closed = threading.Event()
        threading.Thread(target=self._accept_loop, name="listener", daemon=True).start()

    def close(self) -> None:
        """Accept no more callers; connections stay until their callers close them."""
        self._closed.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _accept_loop(self) -> None:
        """Accept callers and read their greetings; no thread is made for one that has not shown the key."""
        greetings: dict[socket.socket, bytes] = {}
        with selectors.DefaultSelector() as waiting, self._socket:
            waiting.register(self._socket, selectors.EVENT_READ)
            while True:
                for ready, _ in waiting.select():
                    line = ready.fileobj
                    assert isinstance(line, socket.socket)
                    try:
                        if line is self._socket:
                            caller, _ = line.accept()
                            caller.setblocking(False)
                            greetings[caller] = b""
                            waiting.register(caller, selectors.EVENT_READ)
                            if len(greetings) > STRANGERS_LIMIT:
                                self._drop(next(iter(greetings)), greetings, waiting)
                        elif line in greetings:
                            self._read_greeting(line, greetings, waiting)
                    except OSError as error:
                        if line is not self._socket:
                            self._drop(line, greetings, waiting)
                        elif self._closed.is_set():
                            return
                        else:
                            log.error("a caller cannot be accepted, it will be retried: %s", error)
                            self._closed.wait(ACCEPT_RETRY_S)

    def _read_greeting(
        self, caller: socket.socket, greetings: dict[socket.socket, bytes], waiting: selectors.BaseSelector
    ) -> None:
        received = caller.recv(GREETING_BYTES - len(greetings[caller]))
        greetings[caller] += received
        greeting = greetings[caller]
        if len(greeting) < GREETING_BYTES and received:
            return
        key, role = greeting[:KEY_BYTES], greeting[KEY_BYTES:]
        if not hmac.compare_digest(key, self.address.key) or role not in self._roles:
            self._drop(caller, greetings, waiting)
            return
        del greetings[caller]
        waiting.unregister(caller)
        caller.setblocking(True)
        serve, connection = self._roles[Role(role)], MessageSocket(caller)
        threading.Thread(target=_serve, args=(serve, connection), name=f"caller {role!r}", daemon=True).start()

    @staticmethod
    def _drop(caller: socket.socket, greetings: dict[socket.socket, bytes], waiting: selectors.BaseSelector) -> None:
        del greetings[caller]
        waiting.unregister(caller)
        caller.close()

    def _serve_calls(self, connection: MessageSocket) -> None:
        while True:
            number, name, arguments = connection.receive()
            try:
                answer = self._methods[name](*arguments)
            except Exception as error:
                _answer(connection, number, None, error)
            else:
                if isinstance(answer, Future):
                    answer.add_done_callback(partial(_answer_future, connection, number))
                else:
                    _answer(connection, number, answer, None)


def _serve(serve: Connected, connection: MessageSocket) -> None:
    """Serve a caller until the connection is lost; one whose message cannot be read is cut off."""
    try:
        serve(connection)
    except SOCKET_LOSS_ERRORS:
        pass
    except Exception:
        log.exception("a message of another process cannot be read: its connection is closed")
    finally:
        connection.close()


def _answer_future(connection: MessageSocket, number: int, done: Future[object]) -> None:
    error = done.exception() if not done.cancelled() else RuntimeError("the call was cancelled")
    _answer(connection, number, None if error is not None else done.result(), error)


def _answer(connection: MessageSocket, number: int, answer: object, error: BaseException | None) -> None:
    """Answer a call; `number` is 0 where nobody waits for the answer."""
    if not number:
        if error is not None:
            log.error("a call that nobody waits for has failed: %s", error)
        return
    with suppress(*SOCKET_LOSS_ERRORS):  # the caller has gone
        try:
            connection.send((number, answer, error))
        except (
            TypeError,
            ValueError,
            OverflowError,
        ) as unsendable:  # else the caller waits for ever
            connection.send((number, None, unsendable))
