"""Runs a client of a live system in a process of its own: it pushes rows, counts results, and times both."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from benchmarks.queries.bids import one_stream

import dsms
from dsms.net.client import Client, Received, Subscription

RESULT_TIMEOUT_S = 60.0  # for the next results
SETTLE_S = 0.3  # after which no more results come
PAUSE_S = 0.02  # between two tuples, so that the system is idle


class ChildProcess:
    """Calls functions of this module in the other process."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    def ask(self, what: str, *arguments: Any) -> Any:
        """Call a function in the other process, and return its answer."""
        self._line.send((what, arguments))
        answer = self._line.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


@contextmanager
def start_child() -> Iterator[ChildProcess]:
    """Start a process that answers calls until the block ends."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield ChildProcess(here)
    finally:
        here.send(("", ()))
        process.join(RESULT_TIMEOUT_S)


def serve(line: Connection) -> None:
    """Answer calls until an empty one comes."""
    frames: dict[tuple[int, int], list[Any]] = {}
    while True:
        what, arguments = line.recv()
        if not what:
            return
        try:
            line.send(DONE[what](frames, *arguments))
        except Exception as error:
            line.send(error)


def through(frames: dict[tuple[int, int], list[Any]], address: str, rows: int, frame: int, results: int) -> float:
    """Time `rows` rows from the first push to the last of `results` results."""
    if (rows, frame) not in frames:
        frames[rows, frame] = one_stream(rows, frame).bids
    with dsms.connect(address) as client, client.subscribe("q") as found:
        _warm(client, found)
        begun = time.perf_counter()
        for columns in frames[rows, frame]:
            client.push("bids", columns)
        count = 0
        while count < results:
            count += int((_next(found).columns["ts"] >= 0).sum())  # results of warming up may come late
        seconds = time.perf_counter() - begun
        assert count == results, f"{count} results, {results} expected"
        assert found.next(SETTLE_S) is None, "more results than expected"
        return seconds


def single(frames: object, address: str, times: int) -> list[float]:
    """Time single tuples from push to result, one after the other, on an idle system."""
    taken = []
    with dsms.connect(address) as client, client.subscribe("q") as found:
        _warm(client, found)
        for _ in range(times):
            time.sleep(PAUSE_S)
            taken.append(_one(client, found))
    return taken


def pushed(frames: dict[tuple[int, int], list[Any]], address: str, rows: int, frame: int) -> float:
    """Time the push of `rows` rows until all are admitted."""
    if (rows, frame) not in frames:
        frames[rows, frame] = one_stream(rows, frame).bids
    with dsms.connect(address) as client:
        begun = time.perf_counter()
        for columns in frames[rows, frame]:
            client.push("bids", columns)
        client.flush()
        return time.perf_counter() - begun


def _warm(client: Client, found: Subscription) -> None:
    """Push rows until a result comes: then the server knows the subscription."""
    client.push("bids", PASSES)
    while not found.next(SETTLE_S):
        client.push("bids", PASSES)
    client.flush()
    while found.next(SETTLE_S):
        pass


def _one(client: Client, found: Subscription) -> float:
    begun = time.perf_counter()
    client.push("bids", PASSES)
    _next(found)
    return time.perf_counter() - begun


def _next(found: Subscription) -> Received:
    batch = found.next(RESULT_TIMEOUT_S)
    assert batch is not None, f"no results within {RESULT_TIMEOUT_S:g} s"
    return batch


PASSES = {name: np.full(1, -1 if name == "ts" else 0) for name in ("auction", "bidder", "price", "ts")}  # all filters
DONE: dict[str, Any] = {"through": through, "single": single, "pushed": pushed}
