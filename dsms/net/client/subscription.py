"""A subscription: an iterator over the results of one query, usable from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from dsms.data.batch import Batch
from dsms.errors import DsmsError

BUFFER_LIMIT_BYTES = 64 * 1024 * 1024  # results received and not yet read


@dataclass(frozen=True, slots=True)
class Received(Batch):
    """A batch of results with its number: 1, 2, 3 … since the first query of this name started."""

    number: int = 0


class Subscription:
    """Iterates over batches of results until it is closed; raises if the client fails or the reader is too slow."""

    def __init__(
        self, query: str, after: int | None, unsubscribe: Callable[[], None], limit: float = BUFFER_LIMIT_BYTES
    ) -> None:
        self.query, self.last = query, after  # the number of the last batch received
        self.missed = 0  # batches that the system had discarded before a reconnect asked for them
        self._unsubscribe, self._limit = unsubscribe, limit
        self._waiting: deque[Received] = deque()
        self._bytes = 0.0
        self._failure: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Received:
        batch = self.next()
        if batch is None:
            raise StopIteration
        return batch

    def next(self, timeout: float | None = None) -> Received | None:
        """Return the next batch; None after `timeout` seconds without one, or once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._failure or self._closed, timeout)
            if self._waiting and not self._closed:
                batch = self._waiting.popleft()
                self._bytes -= batch.memory()
                return batch
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
        """End the subscription; raises the error that a callback raised."""
        with self._changed:
            was_closed, self._closed = self._closed, True
            self._changed.notify_all()
        if not was_closed:
            self._unsubscribe()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            if self._failure is not None:
                raise self._failure

    def deliver(self, batch: Received) -> None:
        """Add a batch of results; fails the subscription if the results not yet read exceed the limit."""
        with self._changed:
            if self._failure is not None or self._closed:
                return
            if self.last is not None and batch.number > self.last + 1:
                self.missed += batch.number - self.last - 1
            self._waiting.append(batch)
            self._bytes += batch.memory()
            self.last = batch.number
            is_behind = self._bytes > self._limit
            self._changed.notify_all()
        if is_behind:
            reason = f"more than {self._limit:.0f} bytes are received and not read; read faster or subscribe again"
            self.fail(DsmsError(f"results of {self.query!r}: {reason}"))
            self._unsubscribe()

    def fail(self, error: BaseException) -> None:
        """Raise this error to the reader after the batches already received."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def start_callback(self, callback: Callable[[Received], object]) -> None:
        """Call `callback` with each batch, in a new thread."""

        def run() -> None:
            try:
                for batch in self:
                    callback(batch)
            except BaseException as error:
                self.fail(error)

        self._thread = threading.Thread(target=run, name=f"results of {self.query}", daemon=True)
        self._thread.start()
