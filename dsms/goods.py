"""One station's goods: batches in its queues and its operator's state; the same class inline and as an actor."""

from __future__ import annotations

import copy
import math
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
from dsms.salvage import RAISED, failed, salvaged, timed


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
    barren: float = 0  # batches in a row that it has raised on altogether; without end: its state is in doubt


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
    salvages: bool = False  # whether rows that the operator raises on are put aside; else they end the run
    meter: Callable[[], float | None] = unmeasured

    def __post_init__(self) -> None:
        self._queues: list[deque[tuple[Batch, float]]] = [deque() for _ in range(self.ports)]
        self.barren: float = 0
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
        figures = taken, taken_bytes, given, given_bytes, cost, since, head, seq
        return Outcome(*figures, gone, asides, due, self.barren), made

    def shed(self, port: int, places: Column | None) -> tuple[float, float, float]:
        """Give up what is at these places of a queue, or all; answers how many, their bytes, and what is first then.

        Time that is told there stays told: by what is behind it or, of the last, alone.
        """
        before = self.contents(port)
        kept: deque[tuple[Batch, float]] = deque()
        if places is not None:
            ends = np.cumsum([units for units, _ in before])
            cuts = np.searchsorted(places, ends)  # the places are in order
            for at, (batch, since) in enumerate(self._queues[port]):
                gone = places[cuts[at - 1] if at else 0 : cuts[at]] - (ends[at - 1] if at else 0)
                left = batch.pick(np.delete(np.arange(len(batch)), gone)) if len(gone) and len(batch) else batch
                tells = at == len(before) - 1 and (batch.upto is not None or batch.ended)
                if not len(gone) or len(left) or tells:
                    kept.append((left, since))
        self._queues[port] = kept
        after = self.contents(port)
        units, size = (was - now for was, now in zip(_sums(before), _sums(after), strict=True))
        return units, size, kept[0][0].first("seq") if kept else NOTHING

    def renew(self, operator: Operator | None) -> None:
        """Let it be as if nothing had gone wrong: with this operator, or with the one there is."""
        self.operator, self.barren = operator or self.operator, 0
        self.operator.meter = self.meter

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
            made = self._attempted(batch, port)
        except RAISED as error:
            if not self.salvages:
                raise OperatorError(f"operator {self.name!r} raised {type(error).__name__}: {error}") from error
            return self._salvaged(batch, port, error)
        if self.barren and len(batch):
            self.barren = 0
        return made

    def _attempted(self, batch: Batch, port: int) -> Batch:
        """What the operator makes of a batch; if it raises, it has put nothing aside."""
        aside = len(self.operator.asides)
        try:
            return self.operator.process(batch, port)
        except RAISED:
            del self.operator.asides[aside:]
            raise

    def _salvaged(self, batch: Batch, port: int, error: BaseException) -> Batch:
        """What can be had of a batch that the operator has raised on; all else is put aside."""
        if self.operator.atomic:
            made, asides = salvaged(lambda part: self._attempted(part, port), batch, error)
            whole = sum(len(aside.batch) for aside in asides) == len(batch)
            self.barren = self.barren + 1 if whole else 0
        else:  # half-way through, its state is neither what it was nor what it should be
            made, asides, self.barren = timed(batch), [failed(batch, error)], math.inf
        self.operator.asides += [aside for aside in asides if len(aside.batch)]
        return made

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


def _sums(contents: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Tuples and bytes of all batches."""
    return sum(units for units, _ in contents), sum(size for _, size in contents)
