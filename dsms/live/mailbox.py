"""Jobs that other threads hand to one thread, which runs them in order at a point of its choice."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from dsms.errors import DsmsError

T = TypeVar("T")


class Mailbox:
    """A queue of jobs: any thread adds, one thread runs them."""

    def __init__(self, owner: str, on_job: Callable[[], None] = lambda: None) -> None:
        self._owner = owner
        self._on_job = on_job  # called by the thread that adds a job
        self._jobs: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self.closing = False
        self.is_waiting = True  # whether its thread waits for jobs
        self.done = 0  # jobs run so far

    def ask(self, job: Callable[[], T]) -> Future[T]:
        """Add a job; the future completes with its result."""
        future: Future[T] = Future()
        with self._changed:
            if self.closing:
                raise DsmsError(f"{self._owner} is closed")
            self._jobs.append((job, future))
            self._on_job()
            self._changed.notify()
        return future

    def ask_later(self, begin: Callable[[], Future[None]], answer: T) -> Future[T]:
        """Add a job that only begins something; the future completes with the answer when that is done."""
        done: Future[T] = Future()

        def follow(job: Future[Future[None]]) -> None:
            if (error := job.exception()) is not None:
                done.set_exception(error)
            else:
                job.result().add_done_callback(finish)

        def finish(begun: Future[None]) -> None:
            if (error := begun.exception()) is not None:
                done.set_exception(error)
            else:
                done.set_result(answer)

        self.ask(begin).add_done_callback(follow)
        return done

    def run_jobs(self) -> None:
        """Run all waiting jobs in order."""
        while self._jobs:
            job, future = self._jobs.popleft()
            self.done += 1
            try:
                future.set_result(job())
            except Exception as error:
                future.set_exception(error)

    def wait(self, seconds: float) -> None:
        """Wait for a job, at most this long."""
        self.is_waiting = True
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self.closing, None if math.isinf(seconds) else seconds)
        self.is_waiting = False

    def close(self) -> None:
        """Refuse further jobs."""
        with self._changed:
            self.closing = True
            self._changed.notify()
