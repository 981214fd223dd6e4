"""A client of a live system in a process of its own: pushes, counts what comes back, and takes the time of it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from benchmarks.bids import one_stream

import dsms
from dsms.client import Client, Received, Subscription

PATIENCE = 60.0  # seconds in which the next results have to come
SETTLED = 0.3  # seconds after which nothing more will come
PAUSE = 0.02  # seconds between two tuples, so that the system is idle


class Caller:
    """Where the other process is asked from."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    def ask(self, what: str, *arguments: Any) -> Any:
        """Have one of the functions of this module done over there."""
        self._line.send((what, arguments))
        answer = self._line.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


@contextmanager
def calling() -> Iterator[Caller]:
    """A process that answers until the end."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=answer, args=(there,), daemon=True)
    process.start()
    try:
        yield Caller(here)
    finally:
        here.send(("", ()))
        process.join(PATIENCE)


def answer(line: Connection) -> None:
    """Do what is asked, until nothing is."""
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
    """Seconds from the first push of so many rows to the last of so many results."""
    if (rows, frame) not in frames:
        frames[rows, frame] = one_stream(rows, frame).bids
    with dsms.connect(address) as client, client.subscribe("q") as found:
        _warm(client, found)
        begun = time.perf_counter()
        for columns in frames[rows, frame]:
            client.push("bids", columns)
        count = 0
        while count < results:
            count += int((_next(found).columns["ts"] >= 0).sum())  # those of warming up may come late
        seconds = time.perf_counter() - begun
        assert count == results, f"{count} results, {results} wanted"
        assert found.next(SETTLED) is None, "more results than wanted"
        return seconds


def single(frames: object, address: str, times: int) -> list[float]:
    """Seconds from the push of a single tuple to its result, again and again, with nothing else to do."""
    taken = []
    with dsms.connect(address) as client, client.subscribe("q") as found:
        _warm(client, found)
        for _ in range(times):
            time.sleep(PAUSE)
            taken.append(_one(client, found))
    return taken


def pushed(frames: dict[tuple[int, int], list[Any]], address: str, rows: int, frame: int) -> float:
    """Seconds until so many rows are admitted."""
    if (rows, frame) not in frames:
        frames[rows, frame] = one_stream(rows, frame).bids
    with dsms.connect(address) as client:
        begun = time.perf_counter()
        for columns in frames[rows, frame]:
            client.push("bids", columns)
        client.flush()
        return time.perf_counter() - begun


def _warm(client: Client, found: Subscription) -> None:
    """The subscription is known there once a result has come by it."""
    client.push("bids", PASSES)
    while not found.next(SETTLED):
        client.push("bids", PASSES)
    client.flush()
    while found.next(SETTLED):
        pass


def _one(client: Client, found: Subscription) -> float:
    begun = time.perf_counter()
    client.push("bids", PASSES)
    _next(found)
    return time.perf_counter() - begun


def _next(found: Subscription) -> Received:
    batch = found.next(PATIENCE)
    assert batch is not None, f"no results within {PATIENCE:g} s"
    return batch


PASSES = {name: np.full(1, -1 if name == "ts" else 0) for name in ("auction", "bidder", "price", "ts")}  # all filters
DONE: dict[str, Any] = {"through": through, "single": single, "pushed": pushed}
