"""One station's goods: batches in its queues and its operator's state; the same class inline and as an actor."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dsms.batch import Batch, Column
from dsms.errors import OperatorError
from dsms.journal import Alike
from dsms.ledger import NOTHING
from dsms.operators import Operator
from dsms.operators.base import Aside


class Outcome(NamedTuple):
    """What came of one step, as the engine is told."""

    taken: float
    taken_bytes: float
    made: float
    made_bytes: float
    cost: float
    since: float
    head: float
    seq: float
    gone: Sequence[float] | Column
    asides: tuple[Aside, ...] = ()  # what could not be taken through
    deadline: int | None = None  # the timestamp at which time alone makes it do something


def unmeasured() -> float | None:
    """No reading: work costs what is declared."""
    return None


@dataclass
class Goods:
    """Takes batches in, works on them when told to, gives batches out."""

    name: str
    operator: Operator
    ports: int
    sizes: tuple[float, ...]  # bytes of a whole tuple, by port
    size: float  # bytes of a whole tuple it puts out
    sink: bool
    timed: bool = False  # whether anybody behind it wants to know how far time has come
    fractional: bool = False
    meter: Callable[[], float | None] = unmeasured

    def __post_init__(self) -> None:
        self._queues: list[deque[tuple[Batch, float]]] = [deque() for _ in range(self.ports)]
        self.operator.meter = self.meter

    def measure(self, meter: Callable[[], float | None] | None) -> None:
        """Let this be what work is measured by; None: it costs what is declared."""
        self.meter = self.operator.meter = meter or unmeasured

    def contents(self, port: int) -> list[tuple[float, float]]:
        """The tuples and bytes of each batch in a queue, the oldest first."""
        size = self.sizes[port]
        return [(self._amount(batch) if batch.rows else 1, self._bytes(batch, size)) for batch, _ in self._queues[port]]

    def put(self, port: int, batch: Batch, since: float) -> None:
        """Rows, or only time, have come at this instant."""
        self._queues[port].append((batch, since))

    def work(self, port: int, startup: float, most: float) -> tuple[Outcome, Batch]:
        """Process what is first in the queue, at most so many rows of it."""
        queue = self._queues[port]
        batch, since = queue.popleft()
        if self.fractional and self.operator.take is not None:
            batch = self._helping(queue, batch, since, self.operator.take)
        elif len(batch) > most:
            batch, rest = batch.cut(int(most))
            queue.appendleft((rest, since))
        started = self.meter()
        made = self._processed(batch, port)
        stopped = self.meter()
        cost = self._declared(batch) + startup if started is None or stopped is None else stopped - started
        head = queue[0][0].first("seq") if queue else NOTHING
        # Where there are no rows to tell it, how far time has come is told as if it were one.
        taken = self._amount(batch) if batch.rows else 1
        given = self._amount(made) if made.rows else int(self.timed and made.upto is not None)
        gone = self._arrivals(made) if self.sink and made.rows and given else ()
        taken_bytes, given_bytes = self._bytes(batch, self.sizes[port]), self._bytes(made, self.size)
        seq, operator = batch.first("seq"), self.operator
        due = operator.deadline() if operator.timed else None
        asides: tuple[Aside, ...] = ()
        if operator.asides:
            asides, operator.asides = tuple(operator.asides), []
        return Outcome(taken, taken_bytes, given, given_bytes, cost, since, head, seq, gone, asides, due), made

    def handed_on(self, meter: Callable[[], float | None] | None = None) -> Goods:
        """The same goods for another process, or come from one: the queues and the state, and who tells the time."""
        handed = copy.copy(self)
        handed.operator = copy.copy(self.operator)
        handed.measure(meter)
        return handed

    def waiting_since(self) -> float:
        return min((queue[0][1] for queue in self._queues if queue), default=NOTHING)

    def _arrivals(self, batch: Batch) -> Sequence[float] | Column:
        arrived = batch.arrived
        return arrived if isinstance(arrived, np.ndarray) else Alike(arrived, batch.rows)

    def _processed(self, batch: Batch, port: int) -> Batch:
        try:
            return self.operator.process(batch, port)
        except Exception as error:
            raise OperatorError(f"operator {self.name!r} raised {type(error).__name__}: {error}") from error

    def _amount(self, batch: Batch) -> float:
        return batch.total("size") if self.fractional else batch.rows

    def _bytes(self, batch: Batch, size: float) -> float:
        return batch.total("size") * size if self.fractional else batch.memory()

    def _declared(self, batch: Batch) -> float:
        if self.fractional:
            return self.operator.cost * batch.total("size")
        factors = batch.columns.get(f"cost.{self.name}")
        return self.operator.cost * float(batch.total("cost") if factors is None else factors.sum())

    def _helping(self, queue: deque[tuple[Batch, float]], first: Batch, since: float, most: float) -> Batch:
        """What one run takes of fractional tuples: pieces together up to `take`, the last cut where that is reached."""
        amount, last = first.total("size"), first
        while amount < most and queue:
            last, since = queue.popleft()
            amount += last.total("size")
        if amount - most > 1e-12:
            queue.appendleft((replace(last, size=amount - most), since))
            amount = most
        return replace(first, size=amount)
