"""The queries in plain numpy, batch by batch: as fast as we could make them, so the limit for an engine on numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.queries.bids import (
    COLUMN_RANGES,
    WINDOW_US,
    BatchedRows,
    Columns,
    ManyQuery,
    ResultChecksum,
    Take,
    many_queries,
)
from numpy.typing import NDArray

Ints = NDArray[np.int64]

SECOND = 1_000_000
INSTANT = 1 << 40  # more than any timestamp here: bidder and timestamp sort as one number


def q0(load: BatchedRows, take: Take) -> None:
    for batch in load.bids:
        take("q", {name: column.copy() for name, column in batch.items()})


def q1(load: BatchedRows, take: Take) -> None:
    for batch in load.bids:
        take("q", {**batch, "price": batch["price"] * 0.908})


def q2(load: BatchedRows, take: Take) -> None:
    for batch in load.bids:
        kept = np.flatnonzero(batch["auction"] % 123 == 0)
        take("q", {name: column.take(kept) for name, column in batch.items()})


def fc(load: BatchedRows, take: Take) -> None:
    for batch in load.bids:
        take("q", four_filters(batch))


def four_filters(batch: Columns) -> Columns:
    holds = batch["price"] < 500_000
    holds &= batch["bidder"] < 5_000
    holds &= batch["auction"] < 500
    holds &= batch["bidder"] % 2 == 0
    kept = np.flatnonzero(holds)
    return {name: column.take(kept) for name, column in batch.items()}


def qa(load: BatchedRows, take: Take) -> None:
    """Keys that may be anything: each batch is sorted by key."""
    _tumbling(load, take, lambda keys: np.unique(keys, return_inverse=True))


def qa_small(load: BatchedRows, take: Take) -> None:
    """Keys known to be small integers: no sorting."""
    every = np.arange(COLUMN_RANGES["auction"])
    _tumbling(load, take, lambda keys: (every, keys))


def _tumbling(load: BatchedRows, take: Take, group: Callable[[Ints], tuple[Ints, Ints]]) -> None:
    """Count and sum by auction for every second."""
    count, total = (
        np.zeros(COLUMN_RANGES["auction"], dtype=np.int64),
        np.zeros(COLUMN_RANGES["auction"], dtype=np.int64),
    )
    second = 0

    def close() -> None:
        some = np.flatnonzero(count)
        take("q", {"auction": some, "n": count[some], "total": total[some]})
        count[:] = total[:] = 0

    for batch in load.bids:
        start, ends = 0, batch["ts"]
        while start < len(ends):
            stop = int(np.searchsorted(ends, (second + 1) * SECOND))
            keys, which = group(batch["auction"][start:stop])
            count[keys] += np.bincount(which, minlength=len(keys))
            # Sums of fewer than 2**53 are exact in floats.
            total[keys] += np.bincount(which, batch["price"][start:stop], len(keys)).astype(np.int64)
            if stop < len(ends):
                close()
                second += 1
            start = stop
    close()


@dataclass(frozen=True)
class _SortedBatch:
    """A batch of one side of the join by bidder and time: keys that may be anything are searched for."""

    batch: Columns
    keys: Ints
    first: int  # timestamps
    last: int

    @classmethod
    def of(cls, batch: Columns) -> _SortedBatch:
        keys = batch["bidder"] * INSTANT + batch["ts"]
        order = np.argsort(keys)
        columns = {name: batch[name].take(order) for name in ("bidder", "price", "auction")}
        return cls(columns, keys.take(order), int(batch["ts"][0]), int(batch["ts"][-1]))

    def met(self, other: _SortedBatch) -> tuple[Ints, Ints]:
        """The pairs of rows within the window."""
        low = np.searchsorted(other.keys, self.keys - WINDOW_US)
        return _expand(low, np.searchsorted(other.keys, self.keys + WINDOW_US, side="right") - low)


@dataclass(frozen=True)
class _IndexedBatch:
    """The same for keys known to be small integers: where each begins is looked up in a table."""

    batch: Columns
    begins: Ints
    first: int
    last: int

    @classmethod
    def of(cls, batch: Columns) -> _IndexedBatch:
        order = np.argsort(batch["bidder"].astype(np.int16), kind="stable")
        begins = np.zeros(COLUMN_RANGES["bidder"] + 1, dtype=np.int64)
        np.cumsum(np.bincount(batch["bidder"], minlength=COLUMN_RANGES["bidder"]), out=begins[1:])
        columns = {name: column.take(order) for name, column in batch.items()}
        return cls(columns, begins, int(batch["ts"][0]), int(batch["ts"][-1]))

    def met(self, other: _IndexedBatch) -> tuple[Ints, Ints]:
        low = other.begins.take(self.batch["bidder"])
        mine, its = _expand(low, other.begins.take(self.batch["bidder"] + 1) - low)
        apart = np.abs(self.batch["ts"].take(mine) - other.batch["ts"].take(its))
        near = np.flatnonzero(apart <= WINDOW_US)
        return mine.take(near), its.take(near)


def qj(load: BatchedRows, take: Take) -> None:
    """Every batch is put in order once and looked up in those of the other side that it can meet."""
    _join(load, take, _SortedBatch)


def qj_small(load: BatchedRows, take: Take) -> None:
    _join(load, take, _IndexedBatch)


def _join(load: BatchedRows, take: Take, kind: type[_SortedBatch] | type[_IndexedBatch]) -> None:
    live: dict[str, list[Any]] = {"a": [], "b": []}
    for pair in zip(load.streams["a"], load.streams["b"], strict=True):
        for side, other, batch in zip("ab", "ba", pair, strict=True):
            new = kind.of(batch)
            live[other] = [old for old in live[other] if old.last >= new.first - WINDOW_US]
            for old in live[other]:
                its, mine = new.met(old)
                rows = {side: (new.batch, its), other: (old.batch, mine)}
                (a, at), (b, bt) = rows["a"], rows["b"]
                columns = {"bidder": a["bidder"].take(at), "price": a["price"].take(at)}
                take("q", {**columns, "other": b["price"].take(bt), "auction": b["auction"].take(bt)})
            live[side].append(new)


def _expand(low: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Pair every row with each of the `counts` rows from `low` on."""
    ends = np.cumsum(counts)
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(ends[-1]) + np.repeat(low - ends + counts, counts)


def mq(load: BatchedRows, take: Take) -> None:
    queries = by_stream()
    for batches in zip(*load.streams.values(), strict=True):
        for stream, batch in zip(load.streams, batches, strict=True):
            for wanted in queries[stream]:
                take(wanted.name, answer_one(batch, wanted))


def by_stream() -> dict[str, list[ManyQuery]]:
    """The many queries by the stream they read."""
    found: dict[str, list[ManyQuery]] = {}
    for wanted in many_queries():
        found.setdefault(wanted.stream, []).append(wanted)
    return found


def answer_one(batch: Columns, wanted: ManyQuery) -> Columns:
    """One of the many queries."""
    holds = batch["price"] < wanted.price
    holds &= batch["bidder"] < wanted.bidder
    kept = np.flatnonzero(holds)
    price = batch["price"].take(kept) * wanted.factor
    return {"auction": batch["auction"].take(kept), "bidder": batch["bidder"].take(kept), "price": price}


QUERIES: dict[str, Callable[[BatchedRows, Take], None]] = {
    "q0": q0, "q1": q1, "q2": q2, "fc": fc, "qa": qa, "qj": qj, "mq": mq,
    "qa small keys": qa_small, "qj small keys": qj_small,
}  # fmt: skip


def answer(query: str, load: BatchedRows) -> ResultChecksum:
    """All that a query answers, added up."""
    tally = ResultChecksum()
    QUERIES[query](load, tally.take)
    return tally
