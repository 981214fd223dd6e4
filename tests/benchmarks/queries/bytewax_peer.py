"""The queries in Bytewax: one event at a time as its guide shows, and in batches of columns as an expert would."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import bytewax.operators as op
import numpy as np
from benchmarks.queries.bids import WINDOW_US, BatchedRows, Columns, ManyQuery, Take
from benchmarks.queries.numpy_peer import answer_one, by_stream, four_filters
from bytewax.dataflow import Dataflow, Stream
from bytewax.operators.windowing import EventClock, TumblingWindower, fold_window
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import TestingSink, TestingSource, run_main

from dsms.data.batch import Column

TOGETHER = 1_000  # events its source hands on at a time: more is no faster
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

Event = tuple[int, int, int, int]  # auction, bidder, price, ts
Step = Callable[[Columns], Columns]
Run = Callable[[], list[Any]]  # what is timed; its answer is what came out


def events(batches: Iterable[Columns]) -> list[Event]:
    return [row for batch in batches for row in zip(*(batch[name].tolist() for name in NAMES), strict=True)]


NAMES = ("auction", "bidder", "price", "ts")


def single(query: str, load: BatchedRows) -> Run:
    """One event at a time; made ready to run."""
    out: list[Any] = []
    flow = Dataflow(query.replace(" ", "-"))
    SINGLE[query](flow, load, out)
    return partial(_run, flow, out)


def batched(query: str, load: BatchedRows, take: Take) -> Callable[[], None]:
    """A batch of columns at a time, made ready to run; results are taken as they come, and not kept."""
    flow = Dataflow(query.replace(" ", "-"))
    for stream, batches in load.streams.items():
        source = op.input(stream, flow, TestingSource(batches))
        for name, steps in _steps(query, stream).items():
            made = source
            for place, step in enumerate(steps):
                made = op.map(f"{stream}-{name}-{place}", made, step)
            op.output(f"{stream}-{name}", made, CallbackSink(partial(take, name)))
    return partial(run_main, flow)


def _steps(query: str, stream: str) -> dict[str, list[Step]]:
    """What is done to the batches of a stream, by name of the query."""
    if query == "mq in one":
        return {wanted.name: [partial(answer_one, wanted=wanted)] for wanted in by_stream()[stream]}
    if query == "mq":
        return {wanted.name: _three_steps(wanted) for wanted in by_stream()[stream]}
    return {"q": BATCHED[query]}


def columns_of(query: str, rows: list[Any]) -> Columns:
    """What came out one by one, as columns, to be compared."""
    names = RESULTS.get(query, NAMES)
    return {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


class CallbackSink(DynamicSink[Columns]):
    """Gives every batch that comes out to a function."""

    def __init__(self, take: Callable[[Columns], None]) -> None:
        self._take = take

    def build(self, step_id: str, worker_index: int, worker_count: int) -> CallbackPartition:
        return CallbackPartition(self._take)


class CallbackPartition(StatelessSinkPartition[Columns]):
    """The only part of it."""

    def __init__(self, take: Callable[[Columns], None]) -> None:
        self._take = take

    def write_batch(self, items: list[Columns]) -> None:
        for columns in items:
            self._take(columns)


RESULTS = {
    "qa": ("auction", "n", "total"),
    "qa still": ("auction", "n", "total"),
    "qj": ("bidder", "price", "other", "auction"),
    "mq": ("auction", "bidder", "price"),
}


def _run(flow: Dataflow, out: list[Any]) -> list[Any]:
    run_main(flow)
    return out


def _source(flow: Dataflow, load: BatchedRows) -> Stream[Event]:
    return op.input("in", flow, TestingSource(events(load.bids), TOGETHER))


def _pass(flow: Dataflow, load: BatchedRows, out: list[Any]) -> None:
    op.output("out", _source(flow, load), TestingSink(out))


def _map(flow: Dataflow, load: BatchedRows, out: list[Any]) -> None:
    made = op.map("euros", _source(flow, load), lambda bid: (bid[0], bid[1], bid[2] * 0.908, bid[3]))
    op.output("out", made, TestingSink(out))


def _filter(flow: Dataflow, load: BatchedRows, out: list[Any]) -> None:
    kept = op.filter("some", _source(flow, load), lambda bid: bid[0] % 123 == 0)
    op.output("out", kept, TestingSink(out))


def _four_filters(flow: Dataflow, load: BatchedRows, out: list[Any]) -> None:
    kept = op.filter("price", _source(flow, load), lambda bid: bid[2] < 500_000)
    kept = op.filter("bidder", kept, lambda bid: bid[1] < 5_000)
    kept = op.filter("auction", kept, lambda bid: bid[0] < 500)
    kept = op.filter("even", kept, lambda bid: bid[1] % 2 == 0)
    op.output("out", kept, TestingSink(out))


def _guide_clock(ts_of: Callable[[Event], datetime]) -> EventClock[Event]:
    """As its guide has it; rows are late when the machine takes longer for them than they were apart, so it waits."""
    return EventClock(ts_of, wait_for_system_duration=timedelta(seconds=10))


def _still_clock(ts_of: Callable[[Event], datetime]) -> EventClock[Event]:
    """Time as the events say and no other: the fastest we found."""
    return EventClock(ts_of, timedelta(0), now_getter=lambda: BEGIN, to_system_utc=lambda _: None)


def _aggregate(
    flow: Dataflow, load: BatchedRows, out: list[Any], *, clock: Callable[..., EventClock[Event]] = _guide_clock
) -> None:
    def fold(sofar: tuple[int, int], bid: Event) -> tuple[int, int]:
        return sofar[0] + 1, sofar[1] + bid[2]

    keyed = op.key_on("auction", _source(flow, load), lambda bid: str(bid[0]))
    when = clock(lambda bid: BEGIN + timedelta(microseconds=bid[3]))
    windows = TumblingWindower(length=timedelta(seconds=1), align_to=BEGIN)
    folded = fold_window("fold", keyed, when, windows, lambda: (0, 0), fold, lambda a, b: (a[0] + b[0], a[1] + b[1]))
    made = op.map("row", folded.down, lambda found: (int(found[0]), *found[1][1]))
    op.output("out", made, TestingSink(out))


def _join(flow: Dataflow, load: BatchedRows, out: list[Any]) -> None:
    """Its own join_window knows aligned windows only: state by key, as its guide does what is not there ready-made."""
    sides = [[(side, row) for row in events(load.streams[side])] for side in "ab"]
    both = [item for pair in zip(*sides, strict=True) for item in pair]  # in the order of time
    keyed = op.key_on("bidder", op.input("in", flow, TestingSource(both, TOGETHER)), lambda item: str(item[1][1]))
    made = op.stateful_flat_map("join", keyed, _meet)
    op.output("out", op.map("row", made, lambda found: found[1]), TestingSink(out))


Seen = dict[str, list[Event]]


def _meet(seen: Seen | None, item: tuple[str, Event]) -> tuple[Seen, Iterable[tuple[int, ...]]]:
    side, row = item
    seen = seen or {"a": [], "b": []}
    other = "b" if side == "a" else "a"
    oldest = row[3] - WINDOW_US
    met = seen[other] = [old for old in seen[other] if old[3] >= oldest]
    seen[side].append(row)
    if side == "a":
        return seen, [(row[1], row[2], old[2], old[0]) for old in met]
    return seen, [(row[1], old[2], row[2], row[0]) for old in met]


def _many(flow: Dataflow, load: BatchedRows, out: list[Any]) -> None:
    for stream, batches in load.streams.items():
        source = op.input(stream, flow, TestingSource(events(batches), TOGETHER))
        for wanted in by_stream()[stream]:
            op.output(f"{wanted.name}-out", _one_of_many(source, wanted), TestingSink(out))


def _one_of_many(source: Stream[Event], wanted: ManyQuery) -> Stream[Any]:
    kept = op.filter(f"{wanted.name}-price", source, lambda bid: bid[2] < wanted.price)
    kept = op.filter(f"{wanted.name}-bidder", kept, lambda bid: bid[1] < wanted.bidder)
    return op.map(f"{wanted.name}-row", kept, lambda bid: (bid[0], bid[1], bid[2] * wanted.factor))


SINGLE: dict[str, Callable[[Dataflow, BatchedRows, list[Any]], None]] = {
    "q0": _pass, "q1": _map, "q2": _filter, "fc": _four_filters, "qa": _aggregate, "qj": _join, "mq": _many,
    "qa still": partial(_aggregate, clock=_still_clock),
}  # fmt: skip


def _copied(batch: Columns) -> Columns:
    return {name: column.copy() for name, column in batch.items()}


def _euros(batch: Columns) -> Columns:
    return {**batch, "price": batch["price"] * 0.908}


def _where(condition: Callable[[Columns], Column]) -> Step:
    def keep(batch: Columns) -> Columns:
        kept = np.flatnonzero(condition(batch))
        return {name: column.take(kept) for name, column in batch.items()}

    return keep


def _three_steps(wanted: ManyQuery) -> list[Step]:
    def projected(batch: Columns) -> Columns:
        price = batch["price"] * wanted.factor
        return {"auction": batch["auction"], "bidder": batch["bidder"], "price": price}

    price, bidder = wanted.price, wanted.bidder
    return [_where(lambda batch: batch["price"] < price), _where(lambda batch: batch["bidder"] < bidder), projected]


BATCHED: dict[str, list[Step]] = {
    "q0": [_copied],
    "q0 uncopied": [],
    "q1": [_euros],
    "q2": [_where(lambda batch: batch["auction"] % 123 == 0)],
    "fc": [
        _where(lambda batch: batch["price"] < 500_000),
        _where(lambda batch: batch["bidder"] < 5_000),
        _where(lambda batch: batch["auction"] < 500),
        _where(lambda batch: batch["bidder"] % 2 == 0),
    ],
    "fc in one": [four_filters],
}
