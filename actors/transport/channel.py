"""A connection to another actor, on which any thread calls its methods."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future
from typing import Any

from actors.transport.address import SOCKET_LOSS_ERRORS, Address, Role, connect, peer_gone


class Channel:
    """Sends calls in order and completes their futures as the answers return."""

    def __init__(self, address: Address) -> None:
        try:
            self._connection = connect(address, Role.CALLS)
        except OSError as error:
            raise peer_gone(error) from None
        self._calls: dict[int, Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._changing = threading.Lock()
        self._error: Exception | None = None  # why no more calls can be made
        threading.Thread(target=self._read_answers, name="answers", daemon=True).start()

    @property
    def is_open(self) -> bool:
        """Whether calls can still be made."""
        return self._error is None

    def call(self, method: str, arguments: tuple[object, ...]) -> Future[Any]:
        """Call a method, without waiting for a process that does not read; the future completes with its answer."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # asyncio cancels futures, and the answer would find it cancelled
        with self._changing:
            if self._error is not None:
                future.set_exception(self._error)
                return future
            number = next(self._numbers)
            self._calls[number] = future
        try:
            self._connection.post((number, method, arguments))
        except OSError as error:
            self._fail(peer_gone(error))
        except Exception as error:  # a message that cannot be encoded: the connection is as it was
            with self._changing:
                self._calls.pop(number, None)
            future.set_exception(error)
        return future

    def cast(self, method: str, arguments: tuple[object, ...]) -> None:
        """Call a method whose answer nobody waits for; OperatorError where the other process is gone."""
        if self._error is not None:
            raise self._error
        try:
            self._connection.post((0, method, arguments))
        except OSError as error:
            self._fail(peer_gone(error))
            raise peer_gone(error) from None

    def close(self) -> None:
        """End the connection; calls that are not answered fail."""
        self._connection.close()

    def _read_answers(self) -> None:
        try:
            while True:
                number, answer, error = self._connection.receive()
                with self._changing:
                    future = self._calls.pop(number)
                if error is None:
                    future.set_result(answer)
                else:
                    future.set_exception(error)
        except SOCKET_LOSS_ERRORS as error:
            self._fail(peer_gone(error))
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        with self._changing:
            self._error = self._error or error
            calls, self._calls = self._calls, {}
        self._connection.close()
        for future in calls.values():
            future.set_exception(error)
