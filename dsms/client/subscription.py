"""The results of one query as they come: something to iterate over, in any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from dsms.batch import Batch
from dsms.errors import DsmsError

BEHIND = 64 * 1024 * 1024  # bytes that may wait to be looked at


@dataclass(frozen=True, slots=True)
class Received(Batch):
    """Rows of a query's answer, with their number: 1, 2, 3 … since there first was a query of this name."""

    number: int = 0


class Subscription:
    """Batches of results; iterating ends when it is closed, and fails when the client does or falls too far behind."""

    def __init__(self, query: str, after: int | None, leave: Callable[[], None], most: float = BEHIND) -> None:
        self.query, self.last = query, after  # the number of the last one that came
        self.missed = 0  # batches that were no longer kept when they were asked for again
        self._leave, self._most = leave, most
        self._waiting: deque[Received] = deque()
        self._bytes = 0.0
        self._failure: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Received:
        found = self.next()
        if found is None:
            raise StopIteration
        return found

    def next(self, timeout: float | None = None) -> Received | None:
        """The next batch; None if none has come in time, or it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._failure or self._closed, timeout)
            if self._waiting and not self._closed:
                found = self._waiting.popleft()
                self._bytes -= found.memory()
                return found
            if self._failure is not None and not self._closed:
                raise self._failure
            return None

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """No more of it; raises what a callback has raised."""
        with self._changed:
            ended, self._closed = self._closed, True
            self._changed.notify_all()
        if not ended:
            self._leave()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            if self._failure is not None:
                raise self._failure

    def give(self, found: Received) -> None:
        """Results have come; if too many wait to be looked at, these and all that follow are left out."""
        with self._changed:
            if self._failure is not None or self._closed:
                return
            if self.last is not None and found.number > self.last + 1:
                self.missed += found.number - self.last - 1
            self._waiting.append(found)
            self._bytes += found.memory()
            self.last = found.number
            behind = self._bytes > self._most
            self._changed.notify_all()
        if behind:
            self.fail(DsmsError(f"results of {self.query!r}: more than {self._most:.0f} bytes wait to be looked at"))
            self._leave()

    def fail(self, error: BaseException) -> None:
        """Nothing more will come, for this reason; what has come can still be looked at."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def hand_to(self, callback: Callable[[Received], object]) -> None:
        """Call this with each batch, in a thread of its own."""

        def run() -> None:
            try:
                for found in self:
                    callback(found)
            except BaseException as error:
                self.fail(error)

        self._thread = threading.Thread(target=run, name=f"results of {self.query}", daemon=True)
        self._thread.start()
