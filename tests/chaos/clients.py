"""Those outside: two who send, one a stream, in bursts and without end, and one who reads every result."""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import dsms
from chaos.expected import QUERIES, Rows, rows
from dsms.errors import DsmsError

PATIENCE = 120.0  # seconds for anything to come right
BURST, PAUSE = 6, 0.25  # frames at once, and seconds until the next
ROWS = 100  # of a frame


class Sender(threading.Thread):
    """Bursts of frames into one stream, for as long as it goes on."""

    def __init__(self, address: str, stream: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._stream, self._random, self._ended = stream, random.Random(f"{seed} {stream}"), threading.Event()
        self._client = dsms.connect(address, producer=f"sender-{stream}", patience=PATIENCE)
        self.pushed = 0  # rows, by their ids
        self.trouble: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            while not self._ended.wait(PAUSE):
                for _ in range(self._random.randrange(1, BURST)):
                    self._client.push(self._stream, rows(self._stream, self.pushed, ROWS))
                    self.pushed += ROWS
        except BaseException as error:
            self.trouble = error

    def finish(self, *others: str) -> None:
        """No more rows, nor by streams that nobody else ends; all were acknowledged."""
        self._ended.set()
        self.join(PATIENCE)
        if self.trouble is not None:
            raise self.trouble
        for stream in (self._stream, *others):
            self._client.end(stream)
        self._client.flush(PATIENCE)

    def close(self) -> None:
        self._ended.set()
        with suppress(DsmsError):
            self._client.close(1.0)


class Reader:
    """Counts every row of every query's results, and knows the latest."""

    def __init__(self, address: str) -> None:
        self._client = dsms.connect(address, patience=PATIENCE)
        self._counting = threading.Condition()
        self.seen: dict[str, Rows] = {query: Counter() for query in QUERIES}
        self.numbers: dict[str, list[int]] = {query: [] for query in QUERIES}
        self._latest = dict.fromkeys(QUERIES, -1)  # first column of all rows so far
        for query in QUERIES:
            self._client.subscribe(query, 0, lambda batch, query=query: self._take(query, batch))

    def forget(self, query: str) -> None:
        """It has gone."""
        with self._counting:
            del self.seen[query]

    def await_row(self, query: str, number: int) -> bool:
        """Wait for a row that begins with this number or a higher one; whether it came."""
        with self._counting:
            return self._counting.wait_for(lambda: self._latest[query] >= number, PATIENCE)

    def await_all(self, wanted: dict[str, Rows]) -> bool:
        """Wait until all that is wanted is there; whether it came."""
        with self._counting:
            return self._counting.wait_for(
                lambda: all(+found == wanted[query] for query, found in self.seen.items()), PATIENCE
            )

    def close(self) -> None:
        with suppress(DsmsError):
            self._client.close(1.0)

    def _take(self, query: str, batch: Any) -> None:
        columns = [batch.columns[name].tolist() for name in batch.columns]
        with self._counting:
            if query not in self.seen:
                return
            if batch.number not in self.numbers[query][-1:]:  # a large one comes in several parts
                self.numbers[query].append(batch.number)
            for sign, *values in zip(batch.each("sign").tolist(), *columns, strict=True):
                self.seen[query][tuple(values)] += sign
            self._latest[query] = max([self._latest[query], *columns[0]])
            self._counting.notify_all()
