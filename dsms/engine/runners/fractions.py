"""PieceRunner: runs abstract plans on fractional tuples, where an operator keeps a fixed part of each tuple."""

from __future__ import annotations

from collections import deque

from dsms.clock import Clock
from dsms.engine.arrival_schedule import ArrivalChunk
from dsms.engine.ledger import NO_HEAD, Ledger, Queue
from dsms.engine.runners.runner import NO_RESULTS, Runner, Step
from dsms.plan.graph import Plan

Piece = tuple[int, float, float, float]  # sequence number, part of a tuple, when it arrived, when it entered this queue


class PieceRunner(Runner):
    """Runs abstract plans in the fractional model of the Chain paper, in this process."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: Clock) -> None:
        super().__init__(plan, ledger, clock)
        for queue in ledger.queues:
            queue.payload = deque()

    def expect(self, chunk: ArrivalChunk) -> None:
        return None

    def admit(self, stream: int, number: int, seq: int, instant: float) -> float:
        buffer = self.ledger.streams[stream]
        for queue in buffer.readers:
            queue.payload.append((seq, 1.0, instant, instant))
            queue.put(1.0, seq)
        return buffer.size

    def work(self, queue: Queue, at: float, startup: float, most: float) -> Step:
        station, payload = queue.station, queue.payload
        operator = station.operator
        seq, amount, arrived, since = first = payload.popleft()
        if operator.take is not None:
            amount = take_fraction(payload, first, operator.take)
        queue.take(amount, payload[0][0] if payload else NO_HEAD)
        cost = operator.cost * amount + startup
        made = amount * operator.selectivity
        if made:
            for reader in self.ledger.outlets[station.index].readers:
                reader.payload.append((seq, made, arrived, at + cost))
                reader.put(made, seq)
        result_arrivals = (arrived,) if station.sink and made else NO_RESULTS
        return Step(queue, amount, made, cost, since, result_arrivals, None)

    def waiting_since(self) -> float:
        return min((queue.payload[0][3] for queue in self.ledger.queues if queue.payload), default=NO_HEAD)


def take_fraction(payload: deque[Piece], first: Piece, most: float) -> float:
    """Take the pieces of one run, up to `most` tuples in total, and split the last; return their total."""
    amount, last = first[1], first
    while amount < most and payload:
        last = payload.popleft()
        amount += last[1]
    if amount - most <= 1e-12:
        return amount
    payload.appendleft((last[0], amount - most, last[2], last[3]))
    return most
