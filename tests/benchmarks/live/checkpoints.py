"""Measures how long turns wait for a checkpoint of large state, and what storing rows before the ack costs."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.live.deployments import BenchDeployment, deploy, run_ray
from benchmarks.report import BenchmarkRow

from dsms.net.client import connect

STATE_BYTES = 100_000_000
PAUSE_LIMIT_S = 0.050  # that turns may wait
REPETITIONS = 5
ROWS, FRAMES = 20_000, 200
STREAM = {"schema": {"id": "int64", "k": "int64", "at": "int64"}, "timestamp": "at"}
MEETING = {
    "streams": {"a": STREAM, "b": STREAM},
    "queries": {"met": {"cql": "SELECT ISTREAM(a.k AS k) FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.id = b.id"}},
}
PASSING = {"streams": {"a": STREAM}, "queries": {"some": {"cql": "SELECT id FROM a WHERE id % 1000 = 0"}}}


def checkpoints(
    state_bytes: int = STATE_BYTES, repetitions: int = REPETITIONS, frames: int = FRAMES
) -> Iterator[BenchmarkRow]:
    """Measure the pause, and rows a second with a log and without one."""
    with run_ray(), tempfile.TemporaryDirectory() as folder:
        with deploy(MEETING, "saved", durable=f"{folder}/saved", checkpoint=3600.0) as system:
            yield _measure_pause(system, state_bytes, repetitions)
        with deploy(PASSING, "stored", durable=f"{folder}/stored") as stored, deploy(PASSING, "passed") as passed:
            ours, theirs = [], []
            for _ in range(min(3, repetitions)):
                ours.append(_measure_rate(stored, frames))
                theirs.append(_measure_rate(passed, frames))
        mean, peer = statistics.median(ours), statistics.median(theirs)
        yield BenchmarkRow(
            "rows/s acknowledged: when stored, against when admitted", f"{mean:,.0f}", f"{peer:,.0f}", mean / peer
        )


def _measure_pause(system: BenchDeployment, state_bytes: int, repetitions: int) -> BenchmarkRow:
    """Fill both inputs of a join until its state is large, then take checkpoints of it."""
    with connect(system.address) as client:
        first = 0
        while (size := _measure_state(system)) < state_bytes:
            ids = np.arange(first, first + ROWS)
            for stream, offset in (("a", 0), ("b", 1)):
                client.push(stream, {"id": 2 * ids + offset, "k": ids, "at": ids})
            first += ROWS
            client.flush()
    saved = [system.checkpoint() for _ in range(repetitions)]
    assert all(one["bytes"] > size / 2 for one in saved), saved
    pause = statistics.median(one["pause"] for one in saved)
    whole = statistics.median(one["seconds"] for one in saved)
    what = f"pause for a checkpoint of {size / 1e6:.0f} MB of state ({whole:.2f} s in all)"
    return BenchmarkRow(
        what,
        f"{1000 * pause:.1f} ms",
        f"{1000 * PAUSE_LIMIT_S:.0f} ms",
        pause / PAUSE_LIMIT_S,
        "≤ 1",
        pause <= PAUSE_LIMIT_S,
    )


def _measure_state(system: BenchDeployment) -> float:
    """Return the bytes of all operators' state, once all rows are processed."""
    while (domain := system.domain()).held:
        time.sleep(0.05)
    rows: Any = sum(stream.rows for stream in domain.streams)
    return float(rows) * 5 * 8  # two columns of each row, its key, its position and its timestamp


def _measure_rate(system: BenchDeployment, frames: int) -> float:
    """Return the rows a second from push to acknowledgement."""
    ids = np.arange(ROWS)
    with connect(system.address) as client:
        begun = time.perf_counter()
        for number in range(frames):
            client.push("a", {"id": ids, "k": ids, "at": ids + number * ROWS})
        client.flush()
        seconds = time.perf_counter() - begun
    return frames * ROWS / seconds
