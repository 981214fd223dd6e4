"""Makes the bids that every engine reads, and the checksum by which their answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsms.data.batch import Column

Columns = Mapping[str, Column]
Take = Callable[[str, Columns], None]  # is given the results of a query, some rows at a time

SEED = 42
COLUMN_RANGES = {"auction": 1_000, "bidder": 10_000, "price": 1_000_000}
BIDS_A_SECOND = 100_000  # of event time
WINDOW_US = 200_000  # of the join, in microseconds: about one match a row when half of the bids come on each side
STREAMS, QUERIES = 10, 250


class ManyQuery(NamedTuple):
    """One of the many queries: two conditions and a projection."""

    name: str
    stream: str
    price: int  # below this
    bidder: int  # below this
    factor: float


@dataclass(frozen=True)
class BatchedRows:
    """Rows in memory, by stream, cut into batches; the streams' batches come by turns."""

    streams: Mapping[str, list[Columns]]

    @property
    def rows(self) -> int:
        return sum(len(batch["ts"]) for batches in self.streams.values() for batch in batches)

    @property
    def bids(self) -> list[Columns]:
        """The batches of the only stream."""
        (batches,) = self.streams.values()
        return batches


@dataclass
class ResultChecksum:
    """Results counted and added up so that neither their order nor how they are cut matters, but every value does."""

    rows: int = 0
    total: int = 0
    by_query: dict[str, int] = field(default_factory=dict)

    def take(self, query: str, columns: Columns) -> None:
        mixed: NDArray[np.uint64] | None = None
        for name in sorted(columns):
            values = np.ascontiguousarray(columns[name]).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            mixed = values if mixed is None else (mixed ^ (mixed >> np.uint64(29))) * np.uint64(31) + values
        assert mixed is not None
        self.rows += len(mixed)
        self.total = (self.total + int(mixed.sum())) % 2**64
        self.by_query[query] = self.by_query.get(query, 0) + len(mixed)


@dataclass
class ResultCount:
    """Results counted only: what is done while time is taken."""

    rows: int = 0

    def take(self, query: str, columns: Columns) -> None:
        self.rows += len(next(iter(columns.values())))


def load_for(query: str, rows: int, batch: int) -> BatchedRows:
    """Return the rows that a query reads, `rows` in all."""
    return {"qj": two_streams, "mq": many_streams}.get(query[:2], one_stream)(rows, batch)


def one_stream(rows: int, batch: int) -> BatchedRows:
    return BatchedRows({"bids": _batches(make_bids(rows, SEED, 1), batch)})


def two_streams(rows: int, batch: int) -> BatchedRows:
    """Return `rows` rows in all, half of them on each side."""
    return BatchedRows({name: _batches(make_bids(rows // 2, SEED + side, 2), batch) for side, name in enumerate("ab")})


def many_streams(rows: int, batch: int) -> BatchedRows:
    """Return `rows` rows in all, spread over the streams."""
    each = rows // STREAMS
    return BatchedRows(
        {f"s{place}": _batches(make_bids(each, SEED + place, STREAMS), batch) for place in range(STREAMS)}
    )


def many_queries() -> list[ManyQuery]:
    draw = np.random.default_rng(SEED)
    prices, bidders = draw.integers(100_000, 900_000, QUERIES), draw.integers(1_000, 9_000, QUERIES)
    return [
        ManyQuery(f"q{place}", f"s{place % STREAMS}", int(price), int(bidder), 1 + place / 1000)
        for place, (price, bidder) in enumerate(zip(prices, bidders, strict=True))
    ]


def make_bids(rows: int, seed: int, streams: int, first: int = 0) -> Columns:
    """Return `rows` rows of one of `streams` streams, from row `first` on."""
    draw = np.random.default_rng(seed)
    values = {name: draw.integers(below, size=rows) for name, below in COLUMN_RANGES.items()}
    return values | {"ts": np.arange(first, first + rows) * (streams * 1_000_000 // BIDS_A_SECOND)}


def _batches(columns: Columns, size: int) -> list[Columns]:
    rows = len(columns["ts"])
    return [{n: c[start : start + size].copy() for n, c in columns.items()} for start in range(0, rows, size)]
