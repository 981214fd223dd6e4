"""Measures the rows a window join holds while ten million pass through it, beside the size of its windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.queries import ours
from benchmarks.queries.bids import BIDS_A_SECOND, SEED, WINDOW_US, BatchedRows, make_bids
from benchmarks.report import BenchmarkRow

from dsms.clock import WallClock
from dsms.data.batch import Batch
from dsms.engine.engine import Engine
from dsms.engine.runners.batches import BatchRunner
from dsms.engine.runners.station_state import StationState
from dsms.operators.joins import MultiJoin
from dsms.policies.registry import policy_named

ROWS, BATCH = 10_000_000, 10_000
WITHIN = 2 * (BIDS_A_SECOND // 2 * WINDOW_US // 1_000_000 + 1)  # rows in the windows of both sides, the edge included


class HeldRows(NamedTuple):
    """The rows held at most, the results, and the bound."""

    most: int  # rows the join held after any batch
    results: int
    bound: int  # what windows and a batch in wait on each side come to


class InspectableRunner(BatchRunner):
    """A runner whose join can be inspected."""

    join: MultiJoin

    def host(self, state: StationState) -> StationState:
        if isinstance(state.operator, MultiJoin):
            self.join = state.operator
        return state


def held(rows: int = ROWS) -> Iterator[BenchmarkRow]:
    found = measure_most_held(rows, BATCH)
    ratio = found.most / found.bound
    assert ratio <= 1, found
    what = f"rows held by the join, {rows / 10**6:g} M rows through it"
    yield BenchmarkRow(what, f"{found.most:,}", f"windows and a batch a side {found.bound:,}", ratio, "≤ 1", ratio <= 1)


def measure_most_held(rows: int, batch: int) -> HeldRows:
    """Return the most rows that the join of QJ holds at any time while `rows` rows come in."""
    plan = ours.plan("qj", BatchedRows({"a": [], "b": []}))
    results = most = 0

    def sink(_: str, batch: Batch) -> None:
        nonlocal results
        results += len(batch)

    engine = Engine(plan, policy_named("fifo"), clock=WallClock(), runner=InspectableRunner, sink=sink)
    assert isinstance(engine.runner, InspectableRunner)
    for place in range(rows // 2 // batch):
        for side, stream in enumerate("ab"):
            columns = make_bids(batch, SEED + 2 * place + side, 2, place * batch)
            engine.push(stream, Batch.of(columns))
            engine.run()
            most = max(most, engine.runner.join.held)
    engine.end()
    engine.run()
    assert 0.9 < results / rows < 1.1  # about one match a row
    return HeldRows(most, results, WITHIN + 2 * batch)
