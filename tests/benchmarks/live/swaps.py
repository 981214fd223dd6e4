"""Swaps policies under load, times each swap, and checks that no result is lost, duplicated or out of order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from benchmarks.live.deployments import run_ray
from benchmarks.report import BenchmarkRow

from actors.rpc.messages import get_result, send
from dsms.data.batch import Batch
from dsms.net.client import Client, Received, connect

SWAPS, SECONDS = 100, 60.0
SWAP_LIMIT_S = 0.020  # for the median swap
LOAD = 0.7  # of one CPU
ROWS, PERIOD_S = 50, 0.1  # in a push, and between two pushes
RESULT_TIMEOUT_S = 60.0  # for the last results
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
COST = LOAD * PERIOD_S / ROWS / 5  # of a row at a station: each passes two and a half of those of both paths


def table(clock: str) -> dict[str, Any]:
    """Return a plan of two paths over several hosts and a query in CQL.

    On the wall clock, stations take their declared time.
    """
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


def expect_ids(rows: int) -> dict[str, list[int]]:
    """Return the ids in each query's results, in order."""
    return {"path": list(range(0, rows, 4)), "way": list(range(0, rows, 4)), "odd": list(range(1, rows, 2))}


class SwapResult(NamedTuple):
    """The duration of each swap, samples of the utilisation, and the rows pushed."""

    seconds: list[float]
    utilisation: list[float]
    rows: int


class ResultReader:
    """Reads all results of a query, with their numbers."""

    def __init__(self, client: Client, query: str) -> None:
        self.ids: list[int] = []
        self.numbers: list[int] = []
        self._came = threading.Condition()
        self._subscription = client.subscribe(query, 0, self._take)

    def until(self, count: int) -> list[int]:
        """Wait for `count` ids, or until no more have come for a long time; answers the ids."""
        with self._came:
            self._came.wait_for(lambda: len(self.ids) >= count, RESULT_TIMEOUT_S)
            return list(self.ids)

    def _take(self, batch: Received) -> None:
        with self._came:
            self.ids += batch.columns["id"].tolist()
            self.numbers.append(batch.number)
            self._came.notify_all()


class Pusher(threading.Thread):
    """Pushes rows with increasing ids at even intervals until `stop` is called."""

    def __init__(self, client: Client, rows: int = ROWS, period: float = PERIOD_S) -> None:
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
        """Wait until all rows are admitted; answers how many were pushed."""
        self._over.set()
        self.join()
        self._client.flush(RESULT_TIMEOUT_S)
        return self.rows


def run_swaps(handle: Any, address: str, swaps: int, seconds: float) -> SwapResult:
    """Swap the policy `swaps` times in `seconds` while rows are pushed, and check every result."""
    times, used = [], []
    with connect(address) as client:
        readers = {query: ResultReader(client, query) for query in expect_ids(0)}
        pusher = Pusher(client)
        pusher.start()
        begun = time.monotonic()
        for number in range(swaps):
            due = begun + seconds * (number + 0.61803 * number % 1) / swaps  # at all points of a period
            time.sleep(max(0.0, due - time.monotonic()))
            asked = send(handle.swap, POLICIES[number % len(POLICIES)], f"swap {number}")
            times += [swap["seconds"] for swap in get_result(asked)]
            if number % 10 == 9 or number == swaps - 1:
                used += [domain.utilisation for domain in get_result(send(handle.status)).domains]
        rows = pusher.stop()
        for query, ids in expect_ids(rows).items():
            assert readers[query].until(len(ids)) == ids, query
            numbers = readers[query].numbers
            assert numbers == list(range(1, 1 + len(numbers))), (query, numbers)
    status = get_result(send(handle.status)).domains[0]
    assert (status.state, status.swaps) == ("running", swaps), status
    return SwapResult(times, used, rows)


def swaps(count: int = SWAPS, seconds: float = SECONDS) -> Iterator[BenchmarkRow]:
    """Measure swaps on a paced clock and on the wall clock."""
    from actors.control.deploy import up

    with run_ray():
        for clock in ("paced", "wall"):
            with TemporaryDirectory() as folder:
                handle = up(table(clock), str(Path(folder)), "swaps.toml", f"swaps-{clock}")
                address = get_result(send(handle.identity))["gateways"][0]
                result = run_swaps(handle, address, count, seconds)
                get_result(send(handle.down))
            yield from _rows(clock, result, seconds)


def _rows(clock: str, result: SwapResult, seconds: float) -> Iterator[BenchmarkRow]:
    median, most = np.median(result.seconds), np.quantile(result.seconds, 0.99)
    used = f"clock {clock}, {np.mean(result.utilisation):.0%} utilised"
    what = f"{len(result.seconds)} swaps in {seconds:g} s, {used}: median"
    yield BenchmarkRow(
        what,
        f"{median * 1e3:.1f} ms",
        f"{SWAP_LIMIT_S * 1e3:g} ms",
        median / SWAP_LIMIT_S,
        "≤ 1",
        bool(median <= SWAP_LIMIT_S),
    )
    yield BenchmarkRow(
        "   the slowest of a hundred", f"{most * 1e3:.1f} ms", f"{SWAP_LIMIT_S * 1e3:g} ms", most / SWAP_LIMIT_S
    )
