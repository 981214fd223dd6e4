"""What is asked of a thread by others: done in its order, where the thread finds it convenient."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from dsms.errors import DsmsError

T = TypeVar("T")


class Inbox:
    """Filled by any thread, attended to by one."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._asked: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._stirred = threading.Condition()
        self.closing = False
        self.resting = True  # whether its thread waits for something to be asked
        self.done = 0  # jobs

    def ask(self, job: Callable[[], T]) -> Future[T]:
        """Have something done."""
        future: Future[T] = Future()
        with self._stirred:
            if self.closing:
                raise DsmsError(f"{self._owner} is closed")
            self._asked.append((job, future))
            self._stirred.notify()
        return future

    def attend(self) -> None:
        """Do what is asked, in the order it was."""
        while self._asked:
            job, future = self._asked.popleft()
            self.done += 1
            try:
                future.set_result(job())
            except Exception as error:
                future.set_exception(error)

    def nap(self, seconds: float) -> None:
        """Wait until something is asked, but no longer."""
        self.resting = True
        with self._stirred:
            self._stirred.wait_for(lambda: self._asked or self.closing, None if math.isinf(seconds) else seconds)
        self.resting = False

    def close(self) -> None:
        """Take no more."""
        with self._stirred:
            self.closing = True
            self._stirred.notify()
