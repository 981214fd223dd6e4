"""How long turns wait for a checkpoint of much state, and what storing rows before they are acknowledged costs."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.deployed import Deployed, deployed, own_ray
from benchmarks.report import Row

from dsms.client import connect

STATE = 100_000_000  # bytes
GOAL = 0.050  # seconds that turns may wait
TIMES = 5
ROWS, FRAMES = 20_000, 200
STREAM = {"schema": {"id": "int64", "k": "int64", "at": "int64"}, "timestamp": "at"}
MEETING = {
    "streams": {"a": STREAM, "b": STREAM},
    "queries": {"met": {"cql": "SELECT ISTREAM(a.k AS k) FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.id = b.id"}},
}
PASSING = {"streams": {"a": STREAM}, "queries": {"some": {"cql": "SELECT id FROM a WHERE id % 1000 = 0"}}}


def checkpoints() -> Iterator[Row]:
    """The pause, and rows a second into a log and past it."""
    with own_ray(), tempfile.TemporaryDirectory() as folder:
        with deployed(MEETING, "saved", durable=f"{folder}/saved", checkpoint=3600.0) as system:
            yield _pause(system)
        with deployed(PASSING, "stored", durable=f"{folder}/stored") as stored, deployed(PASSING, "passed") as passed:
            ours, theirs = [], []
            for _ in range(3):
                ours.append(_rate(stored))
                theirs.append(_rate(passed))
        mean, peer = statistics.median(ours), statistics.median(theirs)
        yield Row(
            "rows/s acknowledged: when stored, against when admitted", f"{mean:,.0f}", f"{peer:,.0f}", mean / peer
        )


def _pause(system: Deployed) -> Row:
    """Both inputs of a join filled until its state is large, then saved some times."""
    with connect(system.address) as client:
        first = 0
        while (size := _state(system)) < STATE:
            ids = np.arange(first, first + ROWS)
            for stream, offset in (("a", 0), ("b", 1)):
                client.push(stream, {"id": 2 * ids + offset, "k": ids, "at": ids})
            first += ROWS
            client.flush()
    saved = [system.checkpoint() for _ in range(TIMES)]
    assert all(one["bytes"] > size / 2 for one in saved), saved
    pause = statistics.median(one["pause"] for one in saved)
    whole = statistics.median(one["seconds"] for one in saved)
    what = f"pause for a checkpoint of {size / 1e6:.0f} MB of state ({whole:.2f} s in all)"
    return Row(what, f"{1000 * pause:.1f} ms", f"{1000 * GOAL:.0f} ms", pause / GOAL, "≤ 1", pause <= GOAL)


def _state(system: Deployed) -> float:
    """Bytes that operators keep, once all rows are worked off."""
    while (domain := system.domain())["held"]:
        time.sleep(0.05)
    rows: Any = sum(stream["rows"] for stream in domain["streams"])
    return float(rows) * 5 * 8  # two columns of each row, its key, its position and its timestamp


def _rate(system: Deployed) -> float:
    """Rows a second from being pushed to being acknowledged."""
    ids = np.arange(ROWS)
    with connect(system.address) as client:
        begun = time.perf_counter()
        for number in range(FRAMES):
            client.push("a", {"id": ids, "k": ids, "at": ids + number * ROWS})
        client.flush()
        seconds = time.perf_counter() - begun
    return FRAMES * ROWS / seconds
