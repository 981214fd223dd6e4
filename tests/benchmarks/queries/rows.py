"""Times a turn over a batch of 10,000 rows on the wall clock, beside the same filter in plain numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from benchmarks.report import BenchmarkRow
from benchmarks.timing import interleave, measure_time
from numpy.typing import NDArray

from dsms.clock import WallClock
from dsms.data.batch import Batch
from dsms.engine.engine import Engine
from dsms.measure.run_measures import MemoryMeasure, ResultMeasure, TurnMeasure
from dsms.plan.graph import Plan
from dsms.policies.registry import policy_named
from dsms.query.plan_file import plan_from

ROWS, BATCHES, REPETITIONS = 10_000, 100, 11

Columns = Mapping[str, NDArray[np.int64]]
Condition = Callable[[Columns], NDArray[np.bool_]]


def one_in_123(columns: Columns) -> NDArray[np.bool_]:
    """NEXMark's query 2."""
    return columns["auction"] % 123 == 0


def half(columns: Columns) -> NDArray[np.bool_]:
    """Many results: what is noted of each of them counts."""
    return columns["price"] < 500_000


def rows(repetitions: int = REPETITIONS) -> Iterator[BenchmarkRow]:
    """Push batches from outside one by one, with all measures on."""
    draw = np.random.default_rng(42).integers
    bids = {name: draw(below, size=ROWS) for name, below in (("auction", 1000), ("bidder", 10_000), ("price", 10**6))}
    bids["ts"] = np.arange(ROWS) // 100
    for what, condition, queries in (
        ("0.8% kept", one_in_123, 1),
        ("0.8% kept, 2 queries", one_in_123, 2),
        ("half kept", half, 1),
    ):
        _check(bids, condition)
        contenders = {"ours": partial(_ours, bids, condition, queries), "numpy": partial(_numpy, bids, condition)}
        times = interleave(contenders, repetitions)
        ratio = times["ours"].median / times["numpy"].median
        ours, peer = times["ours"].micros, f"numpy {times['numpy'].micros}"
        yield BenchmarkRow(f"10,000 rows, {what}", ours, peer, ratio, "≤ 3", ratio <= 3)


def _kept(columns: Columns, condition: Condition) -> dict[str, NDArray[np.int64]]:
    mask = condition(columns)
    return {name: column[mask] for name, column in columns.items()}


def _numpy(bids: Columns, condition: Condition) -> float:
    seconds, made = measure_time(lambda: [_kept(bids, condition) for _ in range(BATCHES)])
    assert len(made) == BATCHES
    return seconds / BATCHES


def _ours(bids: Columns, condition: Condition, queries: int) -> float:
    plan, batch = _plan(queries, lambda batch: condition(batch.columns)), Batch.of(bids)
    turns, results = TurnMeasure(), ResultMeasure(plan)
    engine = Engine(plan, policy_named("fifo"), clock=WallClock(), observers=[MemoryMeasure(), turns, results])

    def work() -> None:
        for _ in range(BATCHES):
            engine.push("bids", batch)
            engine.run()
        engine.finish(engine.clock.now())

    seconds, _ = measure_time(work)
    done = engine.admitted, turns.count, results.count
    assert done == (BATCHES * ROWS, BATCHES * queries, BATCHES * queries * condition(bids).sum())
    return seconds / BATCHES / queries


def _plan(queries: int, *functions: Callable[[Batch], Any]) -> Plan:
    operators = [{"name": f"o{place}", "function": function} for place, function in enumerate(functions)]
    table = {f"q{place}": {"from": "bids", "operators": operators} for place in range(queries)}
    return plan_from({"streams": {"bids": {}}, "queries": table})


def _check(bids: Columns, condition: Condition) -> None:
    """Check that the results are the rows that numpy keeps; the timed plan has no such check."""
    seen: list[Batch] = []

    def see(batch: Batch) -> Batch:
        seen.append(batch)
        return batch

    plan = _plan(1, lambda batch: condition(batch.columns), see)
    engine = Engine(plan, policy_named("fifo"), clock=WallClock())
    engine.push("bids", Batch.of(bids))
    engine.run()
    batch = Batch.joined(seen)
    wanted = _kept(bids, condition)
    assert batch.columns.keys() == wanted.keys()
    assert all(np.array_equal(batch.columns[name], column) for name, column in wanted.items())
