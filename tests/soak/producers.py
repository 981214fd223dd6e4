"""Pushes rows from several clients at a rate, or as fast as credit allows, and counts the results."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import dsms
from dsms.clock import monotonic_s
from dsms.net.client import Client
from soak.plan import rows

ROWS_PER_FRAME = 250
RESULT_TIMEOUT_S = 300.0  # for the last acknowledgement


class ResultCounter:
    """Counts how often the result of each row has come."""

    def __init__(self) -> None:
        self._counts = np.zeros(1 << 16, dtype=np.uint8)
        self._came = threading.Condition()
        self.total = 0

    def __call__(self, batch: dsms.Batch) -> None:
        ids = batch.columns["id"]
        with self._came:
            while int(ids.max()) >= len(self._counts):
                self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            np.add.at(self._counts, ids, 1)
            self.total += len(ids)
            self._came.notify_all()

    def wait(self, total: int, timeout: float = RESULT_TIMEOUT_S) -> bool:
        """Wait until `total` results have come."""
        with self._came:
            return self._came.wait_for(lambda: self.total >= total, timeout)

    def wrong(self, pushed: int) -> tuple[int, int]:
        """Count the rows below this number whose results never came, and those whose came more than once."""
        counts = self._counts[:pushed]
        missing = pushed - int(np.count_nonzero(counts[:pushed]))
        return missing, int(np.count_nonzero(counts > 1))


class Producers:
    """Several clients that push at one rate together; rows are numbered over all of them."""

    def __init__(self, address: str, clients: int) -> None:
        self._clients = [dsms.connect(address) for _ in range(clients)]
        self._numbers = itertools.count()
        self.seen = ResultCounter()
        self._clients[0].subscribe("seen", 0, self.seen)
        self.pushed = 0  # rows that were acknowledged

    def push(self, rate: float, seconds: float) -> int:
        """Push for `seconds`, each frame when it is due or as soon as credit allows; answers the rows admitted."""
        begun, before = monotonic_s(), self.pushed
        frames = itertools.count()
        lock = threading.Lock()

        def work(client: Client) -> None:
            while True:
                with lock:
                    due = next(frames) * ROWS_PER_FRAME / rate
                    if max(due, monotonic_s() - begun) > seconds:
                        break
                    first = next(self._numbers) * ROWS_PER_FRAME
                    self.pushed += ROWS_PER_FRAME
                time.sleep(max(0.0, begun + due - monotonic_s()))
                client.push("rows", rows(first, ROWS_PER_FRAME))
            client.flush(RESULT_TIMEOUT_S)

        threads = [threading.Thread(target=work, args=(client,)) for client in self._clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.pushed - before

    def latency(self, times: int = 20) -> float:
        """Return the median of seconds from a frame to its last result, one frame after the other."""
        seconds = []
        for _ in range(times):
            begun = monotonic_s()
            self._clients[0].push("rows", rows(next(self._numbers) * ROWS_PER_FRAME, ROWS_PER_FRAME))
            self.pushed += ROWS_PER_FRAME
            assert self.seen.wait(self.pushed)
            seconds.append(monotonic_s() - begun)
        return float(np.median(seconds))

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def open_producers(address: str, clients: int = 2) -> Iterator[Producers]:
    """Connect clients to the system at this address."""
    producers = Producers(address, clients)
    try:
        yield producers
    finally:
        producers.close()
