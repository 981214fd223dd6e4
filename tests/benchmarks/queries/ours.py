"""The queries in our own language, run as anybody would: all measures on, batches pushed from memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.queries.bids import BatchedRows, Columns, ResultChecksum, Take, many_queries

from dsms.clock import WallClock
from dsms.data.batch import Batch
from dsms.engine.engine import Engine
from dsms.measure.run_measures import MemoryMeasure, ResultMeasure, TurnMeasure
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from

SCHEMA = {"auction": "int64", "bidder": "int64", "price": "int64", "ts": "timestamp"}
FILTERS = ("price < 500000", "bidder < 5000", "auction < 500", "bidder % 2 = 0")
ALL = "SELECT auction, bidder, price, ts FROM"

ONE: dict[str, str] = {
    "q0": f"{ALL} bids",
    "q1": "SELECT auction, bidder, price * 0.908 AS price, ts FROM bids",
    "q2": f"{ALL} bids WHERE auction % 123 = 0",
    "fc": f"{ALL} bids WHERE {' AND '.join(FILTERS)}",
    "qa": "SELECT RSTREAM(auction, count(*) AS n, sum(price) AS total) FROM bids [RANGE 1 SECOND SLIDE 1 SECOND]"
    " GROUP BY auction",
    "qj": "SELECT ISTREAM(a.bidder AS bidder, a.price AS price, b.price AS other, b.auction AS auction)"
    " FROM a [RANGE 200 MILLISECONDS], b [RANGE 200 MILLISECONDS] WHERE a.bidder = b.bidder",
}
TIMED = ("qa", "qj")  # whose streams have timestamps of their own; the others' are those of arrival


def plan(query: str, load: BatchedRows) -> Plan:
    stream = {"schema": SCHEMA, **({"timestamp": "ts"} if query in TIMED else {})}
    queries: dict[str, Any] = {name: {"cql": text} for name, text in _texts(query).items()}
    return plan_from({"streams": dict.fromkeys(load.streams, stream), "queries": queries})


def _texts(query: str) -> dict[str, str]:
    if query == "mq":
        return {
            wanted.name: f"SELECT auction, bidder, price * {wanted.factor} AS price FROM {wanted.stream}"
            f" WHERE price < {wanted.price} AND bidder < {wanted.bidder}"
            for wanted in many_queries()
        }
    if query == "fc4":  # each filter a query of its own that reads the one before
        return {f"f{n}": f"{ALL} {f'f{n - 1}' if n else 'bids'} WHERE {c}" for n, c in enumerate(FILTERS)}
    return {"q": ONE[query]}


def prepare(query: str, load: BatchedRows, take: Take) -> tuple[Engine, Callable[[], None]]:
    """An engine, and what is timed: everything pushed and run, up to the end."""
    made = plan(query, load)
    last = made.queries[-1].name if query == "fc4" else None

    def sink(name: str, batch: Batch) -> None:
        if last is None or name == last:
            take(name, batch.columns)

    observers = [MemoryMeasure(), TurnMeasure(), ResultMeasure(made)]
    engine = Engine(made, policy_named("fifo"), clock=WallClock(), observers=observers, sink=sink)
    pushed = list(zip(*(map(_batch, batches) for batches in load.streams.values()), strict=True))

    def work() -> None:
        for batches in pushed:
            for stream, batch in zip(load.streams, batches, strict=True):
                engine.push(stream, batch)
                engine.run()
        engine.end()
        engine.run()
        engine.finish(engine.clock.now())

    return engine, work


def answer(query: str, load: BatchedRows) -> ResultChecksum:
    """All that a query answers, added up."""
    tally = ResultChecksum()
    engine, work = prepare(query, load, tally.take)
    work()
    assert engine.admitted == load.rows
    return tally


def _batch(columns: Columns) -> Batch:
    return Batch.of(columns)
