"""Fractional tuples: a tuple is a unit of memory, an operator leaves a part of it; nothing is left to chance."""

from __future__ import annotations

from collections import deque

from dsms.clock import Clock
from dsms.ledger import NOTHING, Ledger, Queue
from dsms.plan import Plan
from dsms.runners.base import NONE, Runner, Step
from dsms.schedule import Chunk

Piece = tuple[int, float, float, float]  # sequence number, how much of a tuple, when it arrived, when it came here


class PieceRunner(Runner):
    """Runs abstract plans in the fractional model of the Chain paper, in this process."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        for queue in ledger.queues:
            queue.goods = deque()

    def expect(self, chunk: Chunk) -> None:
        return None

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        buffer = self.ledger.streams[stream]
        for queue in buffer.readers:
            queue.goods.append((seq, 1.0, instant, instant))
            queue.put(1.0, seq)
        return buffer.size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        station, goods = queue.station, queue.goods
        operator = station.operator
        seq, amount, arrived, since = first = goods.popleft()
        if operator.take is not None:
            amount = helping(goods, first, operator.take)
        queue.take(amount, goods[0][0] if goods else NOTHING)
        cost = operator.cost * amount + startup
        made = amount * operator.selectivity
        if made:
            for reader in self.ledger.outlets[station.index].readers:
                reader.goods.append((seq, made, arrived, at + cost))
                reader.put(made, seq)
        return queue, amount, made, cost, since, (arrived,) if station.sink and made else NONE, None

    def waiting_since(self) -> float:
        return min((queue.goods[0][3] for queue in self.ledger.queues if queue.goods), default=NOTHING)


def helping(goods: deque[Piece], first: Piece, most: float) -> float:
    """What one run takes: pieces together up to `take`, the last of them cut where that is reached."""
    amount, last = first[1], first
    while amount < most and goods:
        last = goods.popleft()
        amount += last[1]
    if amount - most <= 1e-12:
        return amount
    goods.appendleft((last[0], amount - most, last[2], last[3]))
    return most
