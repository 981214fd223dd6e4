"""The demonstration's load: what is pushed when, the same in every phase, so that phases can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsms.arrivals import arrivals_from
from dsms.clock import epoch

EVERY = 0.2  # seconds between two pushes into a stream: a turn has enough to do to be worth its messages
SEED = 1
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Push:
    """Rows that go together, and when they are due, from the beginning of a phase."""

    at: float
    stream: str
    rows: Columns
    count: int


def pushes(streams: Mapping[str, Any], seconds: float) -> list[Push]:
    """All pushes of a phase in their order: rows arrive as the plan's streams say."""
    found = []
    for number, (stream, table) in enumerate(streams.items()):
        arrivals, draw = arrivals_from(table["arrivals"], seed=SEED), np.random.default_rng([SEED, number])
        offset = EVERY * number / len(streams)  # so that they do not all come at once
        for start in np.arange(-offset, seconds, EVERY):
            count = len(arrivals.between(max(0.0, start), min(seconds, start + EVERY)))
            if count:
                found.append(Push(float(start) + EVERY, stream, ROWS[stream](draw, count), count))
    return sorted(found, key=lambda push: push.at)


def clicks(draw: np.random.Generator, rows: int) -> Columns:
    """Visitors, pages, how long they stayed and the price of what they saw, all of it even."""
    return {
        "visitor": draw.integers(0, 10_000, rows),
        "page": draw.integers(0, 100, rows),
        "stay": draw.uniform(0.0, 2.0, rows),
        "price": draw.uniform(0.0, 100.0, rows),
    }


def logins(draw: np.random.Generator, rows: int) -> Columns:
    """Visitors, where they come from, and whether the password was right."""
    return {
        "visitor": draw.integers(0, 10_000, rows),
        "address": draw.integers(0, 1 << 32, rows),
        "outcome": draw.integers(0, 10, rows),
    }


ROWS: Mapping[str, Callable[[np.random.Generator, int], Columns]] = {"clicks": clicks, "logins": logins}


def played(client: Any, load: list[Push], wait: Callable[[float], object]) -> None:
    """Push each when it is due, by a `wait` for so many seconds; one that is late counts from when it was due."""
    begun = epoch()
    for push in load:
        wait(max(0.0, begun + push.at - epoch()))
        client.push(push.stream, push.rows, arrived=np.full(push.count, begun + push.at))
    client.flush(FLUSH)


FLUSH = 60.0  # seconds for the last push to be acknowledged
