"""Clients of a chaos run: two send bursts of rows, one stream each, and one reads every result."""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

import dsms
from chaos.expected import QUERIES, Rows, make_rows
from dsms.errors import DsmsError

CLIENT_TIMEOUT_S = 120.0  # for any recovery
BURST_FRAMES, BURST_PAUSE_S = 6, 0.25
ROWS_PER_FRAME = 100


class Sender(threading.Thread):
    """Sends bursts of frames into one stream until it is finished."""

    def __init__(self, address: str, stream: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._stream, self._random, self._ended = stream, random.Random(f"{seed} {stream}"), threading.Event()
        self._client = dsms.connect(address, producer=f"sender-{stream}", patience=CLIENT_TIMEOUT_S)
        self.pushed = 0  # rows, by their ids
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            while not self._ended.wait(BURST_PAUSE_S):
                for _ in range(self._random.randrange(1, BURST_FRAMES)):
                    self._client.push(self._stream, make_rows(self._stream, self.pushed, ROWS_PER_FRAME))
                    self.pushed += ROWS_PER_FRAME
        except BaseException as error:
            self.error = error

    def finish(self, *others: str) -> None:
        """Stop, end this stream and the others named, and wait until all rows are acknowledged."""
        self._ended.set()
        self.join(CLIENT_TIMEOUT_S)
        if self.error is not None:
            raise self.error
        for stream in (self._stream, *others):
            self._client.end(stream)
        self._client.flush(CLIENT_TIMEOUT_S)

    def close(self) -> None:
        self._ended.set()
        with suppress(DsmsError):
            self._client.close(1.0)


class CountingReader:
    """Counts every row of every query's results, and keeps the latest id."""

    def __init__(self, address: str) -> None:
        self._client = dsms.connect(address, patience=CLIENT_TIMEOUT_S)
        self._counting = threading.Condition()
        self.seen: dict[str, Rows] = {query: Counter() for query in QUERIES}
        self.numbers: dict[str, list[int]] = {query: [] for query in QUERIES}
        self._latest = dict.fromkeys(QUERIES, -1)  # first column of all rows so far
        for query in QUERIES:
            self._client.subscribe(query, 0, partial(self._take, query))

    def forget(self, query: str) -> None:
        """Ignore a query that is removed from the plan."""
        with self._counting:
            del self.seen[query]

    def await_row(self, query: str, number: int) -> bool:
        """Wait for a row that begins with this number or a higher one; answers whether it came."""
        with self._counting:
            return self._counting.wait_for(lambda: self._latest[query] >= number, CLIENT_TIMEOUT_S)

    def await_all(self, expected: dict[str, Rows]) -> bool:
        """Wait for all expected rows; answers whether they came."""
        with self._counting:
            return self._counting.wait_for(
                lambda: all(+seen == expected[query] for query, seen in self.seen.items()), CLIENT_TIMEOUT_S
            )

    def close(self) -> None:
        with suppress(DsmsError):
            self._client.close(1.0)

    def _take(self, query: str, batch: Any) -> None:
        columns = [batch.columns[name].tolist() for name in batch.columns]
        with self._counting:
            if query not in self.seen:
                return
            if batch.number not in self.numbers[query][-1:]:  # a large result comes in several parts
                self.numbers[query].append(batch.number)
            for sign, *values in zip(batch.each("sign").tolist(), *columns, strict=True):
                self.seen[query][tuple(values)] += sign
            self._latest[query] = max([self._latest[query], *columns[0]])
            self._counting.notify_all()
