"""Checks that every policy's run must pass: conservation of tuples, choices among ready segments, the list of turns."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pytest
from support.strategies import (
    QueueHistory,
    is_takeable,
    list_queue,
    policy,
)

import dsms
from dsms.engine.engine import Engine
from dsms.engine.ledger import NO_HEAD, Queue
from dsms.engine.observers import Observer
from dsms.engine.runners import BatchRunner
from dsms.measure.trace import TurnTrace
from dsms.plan.segment import Segment

RUNNERS = {"inline": None, "batches": BatchRunner}


def turns(plan: dsms.Plan, text: str, runner: Any = None) -> str:
    file = io.StringIO()
    Engine(plan, policy(text), runner=runner, observers=[TurnTrace(file)]).run()
    return file.getvalue()


def conserved(engine: Engine, history: QueueHistory) -> None:
    """Check that station state, ledger and the history of events agree on every queue and on the memory of all."""
    ledger, plan = engine.ledger, engine.plan
    kept = {queue.index: list_queue(engine.runner, queue) for queue in ledger.queues}
    for queue in ledger.queues:
        mine, due = kept[queue.index], history.waiting(queue)
        assert [seq for seq, _, _ in mine] == [seq for seq, _, _ in due]
        assert [amount for _, amount, _ in mine] == pytest.approx([amount for _, amount, _ in due])
        assert [unit for _, _, unit in mine] == [unit for _, _, unit in due]
        assert queue.count == pytest.approx(sum(amount for _, amount, _ in mine))
        assert queue.oldest == (mine[0][0] if mine else NO_HEAD)
    held = held_bytes = 0.0
    for buffer in (*ledger.streams, *ledger.outlets):
        stocks = sorted((kept[queue.index] for queue in buffer.readers), key=len)
        for stock in stocks:  # every reader has a suffix of what the slowest reader has
            assert [seq for seq, _, _ in stock] == [seq for seq, _, _ in stocks[-1][len(stocks[-1]) - len(stock) :]]
        amounts = [sum(amount for _, amount, _ in stock) for stock in stocks]
        sizes = [sum(amount * unit for _, amount, unit in stock) for stock in stocks]
        once = plan.settings.buffers == "shared"
        held += max(amounts, default=0.0) if once else sum(amounts)
        held_bytes += max(sizes, default=0.0) if once else sum(sizes)
    assert ledger.held == pytest.approx(held)
    assert pytest.approx(held_bytes) == (ledger.held_bytes if ledger.size is None else ledger.held * ledger.size)


class Choices(Observer):
    """Computes before every turn, from all segments, which must be chosen and at which queue it must begin."""

    trusted = True

    def __init__(self) -> None:
        self.wanted: tuple[Segment, Queue] | None = None
        self.waited: Counter[int] = Counter()  # by segment with work: turns of others since its work began
        self.longest = 0

    def attach(self, engine: Engine) -> None:
        self.engine = engine

    def begin(self, now: float) -> None:
        segments = {segment.serial: segment for queue in self.engine.ledger.queues for segment in queue.segments}
        ready = []
        for segment in segments.values():
            stock = {queue: list_queue(self.engine.runner, queue) for queue in segment.queues}
            assert segment.pending == pytest.approx(sum(amount for kept in stock.values() for _, amount, _ in kept))
            if any(stock.values()):
                takes = [queue for queue in stock if stock[queue] and is_takeable(self.engine, queue)]
                if not takes:
                    continue  # a join or union that waits for an older tuple
                start = min(takes, key=lambda q: (q.oldest, -q.station.index))
                first = segment.stations[0]
                by_age = self.engine.control.policy.traits.by_age
                place = (start.oldest, -first.depth, first.index, segment.index) if by_age else (segment.index,)
                ready.append((-self.engine.control.policy.priority(segment), place, segment, start))
        _, _, chosen, start = min(ready, key=lambda entry: entry[:2])
        self.wanted = (chosen, start)
        self.waited = Counter({s.serial: self.waited[s.serial] + 1 for _, _, s, _ in ready if s is not chosen})
        self.longest = max(self.longest, *self.waited.values(), 0)

    def turn(self, start: float, segment: Segment, steps: Any) -> None:
        assert self.wanted == (segment, steps[0].queue)
        inside = {queue.index for queue in segment.queues}
        assert all(step.queue.index in inside and step.taken > 0 for step in steps)
