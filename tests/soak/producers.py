"""Clients that push rows when they are due, or as soon as they may, and one that counts what comes back."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import dsms
from dsms.clock import stopwatch
from soak.plan import rows

FRAME = 250  # rows
WAIT = 300.0  # seconds for the last acknowledgement


class Seen:
    """Which rows' results have come, and how often."""

    def __init__(self) -> None:
        self._counts = np.zeros(1 << 16, dtype=np.uint8)
        self._came = threading.Condition()
        self.total = 0

    def __call__(self, batch: dsms.Batch) -> None:
        found = batch.columns["id"]
        with self._came:
            while int(found.max()) >= len(self._counts):
                self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            np.add.at(self._counts, found, 1)
            self.total += len(found)
            self._came.notify_all()

    def wait(self, total: int, timeout: float = WAIT) -> bool:
        """Wait until so many have come."""
        with self._came:
            return self._came.wait_for(lambda: self.total >= total, timeout)

    def wrong(self, pushed: int) -> tuple[int, int]:
        """Of the rows below this number: how many never came, and how many came more than once."""
        counts = self._counts[:pushed]
        missing = pushed - int(np.count_nonzero(counts[:pushed]))
        return missing, int(np.count_nonzero(counts > 1))


class Producers:
    """Several clients that push at a rate together; rows are numbered over all of them."""

    def __init__(self, address: str, clients: int) -> None:
        self._clients = [dsms.connect(address) for _ in range(clients)]
        self._numbers = itertools.count()
        self.seen = Seen()
        self._clients[0].subscribe("seen", 0, self.seen)
        self.pushed = 0  # rows that were acknowledged

    def push(self, rate: float, seconds: float) -> int:
        """Push for so long, each frame when it is due or as soon as it may; answers how many rows were taken."""
        begun, before = stopwatch(), self.pushed
        frames = itertools.count()
        lock = threading.Lock()

        def work(client: dsms.Client) -> None:
            while True:
                with lock:
                    due = next(frames) * FRAME / rate
                    if max(due, stopwatch() - begun) > seconds:
                        break
                    first = next(self._numbers) * FRAME
                    self.pushed += FRAME
                time.sleep(max(0.0, begun + due - stopwatch()))
                client.push("rows", rows(first, FRAME))
            client.flush(WAIT)

        threads = [threading.Thread(target=work, args=(client,)) for client in self._clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.pushed - before

    def latency(self, times: int = 20) -> float:
        """The median of seconds from a frame to its last result, one after the other."""
        found = []
        for _ in range(times):
            begun = stopwatch()
            self._clients[0].push("rows", rows(next(self._numbers) * FRAME, FRAME))
            self.pushed += FRAME
            assert self.seen.wait(self.pushed)
            found.append(stopwatch() - begun)
        return float(np.median(found))

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def producing(address: str, clients: int = 2) -> Iterator[Producers]:
    """So many clients of the system at this address."""
    found = Producers(address, clients)
    try:
        yield found
    finally:
        found.close()
