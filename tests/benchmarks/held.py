"""Memory: what a window join holds while ten million rows go through it, against what its windows are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import ours
from benchmarks.bids import BIDS_A_SECOND, SEED, WINDOW, Load, bids
from benchmarks.report import Row

from dsms.batch import Batch
from dsms.clock import WallClock
from dsms.engine import Engine
from dsms.goods import Goods
from dsms.joins import MultiJoin
from dsms.policies.registry import policy_named
from dsms.runners.batches import BatchRunner

ROWS, BATCH = 10_000_000, 10_000
WITHIN = 2 * (BIDS_A_SECOND // 2 * WINDOW // 1_000_000 + 1)  # rows in the windows of both sides, the edge included


class Held(NamedTuple):
    """What came of it."""

    most: int  # rows the join held after any batch
    results: int
    bound: int  # what windows and a batch in wait on each side come to


class SeenRunner(BatchRunner):
    """Lets one look at the join."""

    join: MultiJoin

    def host(self, goods: Goods) -> Goods:
        if isinstance(goods.operator, MultiJoin):
            self.join = goods.operator
        return goods


def held() -> Iterator[Row]:
    found = most_held(ROWS, BATCH)
    ratio = found.most / found.bound
    assert ratio <= 1, found
    what = f"rows held by the join, {ROWS // 10**6} M rows through it"
    yield Row(what, f"{found.most:,}", f"windows and a batch a side {found.bound:,}", ratio, "≤ 1", ratio <= 1)


def most_held(rows: int, batch: int) -> Held:
    """The most rows that the join of QJ holds at any time while so many come in."""
    plan = ours.plan("qj", Load({"a": [], "b": []}))
    results = most = 0

    def sink(_: str, batch: Batch) -> None:
        nonlocal results
        results += len(batch)

    engine = Engine(plan, policy_named("fifo"), clock=WallClock(), runner=SeenRunner, sink=sink)
    assert isinstance(engine.runner, SeenRunner)
    for place in range(rows // 2 // batch):
        for side, stream in enumerate("ab"):
            columns = bids(batch, SEED + 2 * place + side, 2, place * batch)
            engine.push(stream, Batch.of(columns))
            engine.run()
            most = max(most, engine.runner.join.held)
    engine.end()
    engine.run()
    assert 0.9 < results / rows < 1.1  # about one match a row
    return Held(most, results, WITHIN + 2 * batch)
