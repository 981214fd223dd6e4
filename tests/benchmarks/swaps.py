"""Policies swapped under load: what a swap takes, and that no result is lost, doubled or out of order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from benchmarks.report import Row

from dsms.batch import Batch
from dsms.client import Client, Received, connect

SWAPS, SECONDS = 100, 60.0
GOAL = 0.020  # seconds for the median swap
LOAD = 0.7  # of the CPU there is
ROWS, PERIOD = 50, 0.1  # in a push, and seconds between two
WAIT = 60.0  # seconds for the last results
POLICIES = (
    "chain",
    "fas-mcq",
    "rr",
    "adaptive:candidates=chain+fas-mcq",
    "partition-latency",
    "rr-query",
    "fifo",
    "greedy",
)
COST = LOAD * PERIOD / ROWS / 5  # of a row at a station: each passes two and a half of those of both paths


def table(clock: str) -> dict[str, Any]:
    """Two paths over several hosts, and a query in CQL; by the wall clock stations take the time that they declare."""
    burnt = COST if clock == "wall" else 0.0

    def every(step: int) -> Callable[[Batch], Any]:  # what is defined in a function goes to hosts as it is
        def kept(batch: Batch) -> Any:
            until = time.thread_time() + burnt * batch.rows
            while time.thread_time() < until:
                pass
            return batch.columns["id"] % step == 0

        return kept

    queries: dict[str, Any] = {
        name: {
            "from": "s",
            "operators": [
                {"name": f"{name}{place}", "function": every(step), "cost": COST}
                for place, step in enumerate((1, 2, 4))
            ],
        }
        for name in ("path", "way")
    }
    queries["odd"] = {"cql": "SELECT id FROM s WHERE id % 2 = 1"}
    live = {"clock": clock, "actors": 4, "port": 0}
    return {"streams": {"s": {"schema": {"id": "int64"}}}, "queries": queries, "live": live}


def expected(rows: int) -> dict[str, list[int]]:
    """The ids that each query lets through, in order."""
    return {"path": list(range(0, rows, 4)), "way": list(range(0, rows, 4)), "odd": list(range(1, rows, 2))}


class Found(NamedTuple):
    """What came of it."""

    seconds: list[float]  # that each swap took
    utilisation: list[float]  # as the system says, now and then
    rows: int


class Reader:
    """All results of a query with their numbers."""

    def __init__(self, client: Client, query: str) -> None:
        self.ids: list[int] = []
        self.numbers: list[int] = []
        self._came = threading.Condition()
        self._subscription = client.subscribe(query, 0, self._take)

    def until(self, count: int) -> list[int]:
        """The ids, once there are so many, or nothing more has come for long."""
        with self._came:
            self._came.wait_for(lambda: len(self.ids) >= count, WAIT)
            return list(self.ids)

    def _take(self, batch: Received) -> None:
        with self._came:
            self.ids += batch.columns["id"].tolist()
            self.numbers.append(batch.number)
            self._came.notify_all()


class Pusher(threading.Thread):
    """Pushes rows with increasing ids in even steps until it is told to stop."""

    def __init__(self, client: Client, rows: int = ROWS, period: float = PERIOD) -> None:
        super().__init__(daemon=True)
        self._client, self._each, self._period = client, rows, period
        self._over = threading.Event()
        self.rows = 0

    def run(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            self._client.push("s", {"id": np.arange(self.rows, self.rows + self._each)})
            self.rows += self._each
            due += self._period
            self._over.wait(max(0.0, due - time.monotonic()))

    def stop(self) -> int:
        """Answers how many rows were pushed, when all are admitted."""
        self._over.set()
        self.join()
        self._client.flush(WAIT)
        return self.rows


def swapped(handle: Any, address: str, swaps: int, seconds: float) -> Found:
    """Swap so often in so many seconds while rows are pushed, and check every result."""
    import ray

    times, used = [], []
    with connect(address) as client:
        readers = {query: Reader(client, query) for query in expected(0)}
        pusher = Pusher(client)
        pusher.start()
        begun = time.monotonic()
        for number in range(swaps):
            due = begun + seconds * (number + 0.61803 * number % 1) / swaps  # at all points of a period
            time.sleep(max(0.0, due - time.monotonic()))
            asked = handle.swap.remote(POLICIES[number % len(POLICIES)], f"swap {number}")
            times += [told["seconds"] for told in ray.get(asked)]
            if number % 10 == 9:
                used += [domain["utilisation"] for domain in ray.get(handle.status.remote())["domains"]]
        rows = pusher.stop()
        for query, ids in expected(rows).items():
            assert readers[query].until(len(ids)) == ids, query
            numbers = readers[query].numbers
            assert numbers == list(range(1, 1 + len(numbers))), (query, numbers)
    status = ray.get(handle.status.remote())["domains"][0]
    assert (status["state"], status["swaps"]) == ("running", swaps), status
    return Found(times, used, rows)


def swaps() -> Iterator[Row]:
    """The section of the benchmark."""
    import ray

    from actors import cluster
    from actors.deployment import up

    cluster.local(budgets=1)
    try:
        for clock in ("paced", "wall"):
            with TemporaryDirectory() as folder:
                handle = up(table(clock), str(Path(folder)), "swaps.toml", f"swaps-{clock}")
                address = ray.get(handle.identity.remote())["gateways"][0]
                found = swapped(handle, address, SWAPS, SECONDS)
                ray.get(handle.down.remote())
            yield from _rows(clock, found)
    finally:
        ray.shutdown()


def _rows(clock: str, found: Found) -> Iterator[Row]:
    median, most = np.median(found.seconds), np.quantile(found.seconds, 0.99)
    used = f"clock {clock}, {np.mean(found.utilisation):.0%} utilised"
    what = f"{len(found.seconds)} swaps in {SECONDS:g} s, {used}: median"
    yield Row(what, f"{median * 1e3:.1f} ms", f"{GOAL * 1e3:g} ms", median / GOAL, "≤ 1", bool(median <= GOAL))
    yield Row("   the slowest of a hundred", f"{most * 1e3:.1f} ms", f"{GOAL * 1e3:g} ms", most / GOAL)
