"""StationState: the batches in a station's queues and its operator with its state, in this process or a host."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dsms.data.batch import Batch, Column
from dsms.data.dead_letter import DeadLetter
from dsms.data.journal import RepeatedValue
from dsms.engine.ledger import NO_HEAD
from dsms.engine.runners.bad_rows import OPERATOR_EXCEPTIONS, dead_letter, process_without_bad_rows, watermark_only
from dsms.engine.runners.coalescing import join_in_order, take_joinable
from dsms.errors import OperatorError
from dsms.operators import Operator


class StepOutcome(NamedTuple):
    """The outcome of one step, as reported to the engine."""

    taken: float
    taken_bytes: float
    made: float
    made_bytes: float
    cost: float
    since: float
    head: float
    seq: float
    result_arrivals: Sequence[float] | Column
    dead_letters: tuple[DeadLetter, ...] = ()  # rows that the operator rejected
    deadline: int | None = None  # the timestamp at which a watermark alone makes it put out rows
    consecutive_failures: float = (
        0  # batches in a row that it rejected entirely; infinity: its state may be inconsistent
    )


def no_meter() -> float | None:
    """Return no reading: work costs what the operator declares."""
    return None


@dataclass
class StationState:
    """Queues batches, runs the operator on them, and returns its outputs."""

    name: str
    operator: Operator
    ports: int
    sizes: tuple[float, ...]  # by port: bytes of a whole input tuple
    size: float  # bytes of a whole output tuple
    sink: bool
    timed: bool = False  # whether a station downstream reacts to watermarks without rows
    fractional: bool = False
    rejects_bad_rows: bool = (
        False  # whether rows that the operator raises on become dead letters; else they end the run
    )
    meter: Callable[[], float | None] = no_meter

    def __post_init__(self) -> None:
        self._queues: list[deque[tuple[Batch, float]]] = [deque() for _ in range(self.ports)]
        self.consecutive_failures: float = 0
        self.operator.meter = self.meter

    def measure(self, meter: Callable[[], float | None] | None) -> None:
        """Measure work by this meter; None: work costs what the operator declares."""
        self.meter = self.operator.meter = meter or no_meter

    def contents(self, port: int) -> list[tuple[float, float]]:
        """Return the tuples and bytes of each batch in a queue, the oldest first."""
        size = self.sizes[port]
        return [(self._amount(batch) if batch.rows else 1, self._bytes(batch, size)) for batch, _ in self._queues[port]]

    def put(self, port: int, batch: Batch, since: float) -> None:
        """Queue rows, or a watermark without rows, at this instant."""
        self._queues[port].append((batch, since))

    def work(self, port: int, startup: float, most: float, coalesce: bool = False) -> tuple[StepOutcome, Batch]:
        """Run the operator on the first batch of a queue, on at most this many of its rows.

        With `coalesce`, small batches that wait behind it are part of the same step.
        """
        queue = self._queues[port]
        batch, since = queue.popleft()
        parts = [batch]
        if self.fractional and self.operator.take is not None:
            batch = self._take_fraction(queue, batch, since, self.operator.take)
            parts = [batch]
        elif len(batch) > most:
            batch, rest = batch.cut(int(most))
            queue.appendleft((rest, since))
            parts = [batch]
        elif coalesce:
            parts = take_joinable(queue, batch, most)
            batch = join_in_order(parts)
        started = self.meter()
        made = self._process(batch, port)
        stopped = self.meter()
        cost = self._declared_cost(batch) + startup if started is None or stopped is None else stopped - started
        head = queue[0][0].first("seq") if queue else NO_HEAD
        # A watermark without rows is passed on like one row.
        taken = sum(self._amount(part) if part.rows else 1 for part in parts)
        given = self._amount(made) if made.rows else int(self.timed and made.watermark is not None)
        result_arrivals = self._arrivals(made) if self.sink and made.rows and given else ()
        taken_bytes = sum(self._bytes(part, self.sizes[port]) for part in parts)
        given_bytes = self._bytes(made, self.size)
        seq, operator = batch.first("seq"), self.operator
        due = operator.deadline() if operator.is_time_driven else None
        dead_letters: tuple[DeadLetter, ...] = ()
        if operator.dead_letters:
            dead_letters, operator.dead_letters = tuple(operator.dead_letters), []
        figures = taken, taken_bytes, given, given_bytes, cost, since, head, seq
        return StepOutcome(*figures, result_arrivals, dead_letters, due, self.consecutive_failures), made

    def shed(self, port: int, places: Column | None) -> tuple[float, float, float]:
        """Drop the rows at these places of a queue, or all; return their number, their bytes, and the new head.

        Time that is told there stays told: by what is behind it or, of the last, alone.
        """
        before = self.contents(port)
        kept: deque[tuple[Batch, float]] = deque()
        if places is not None:
            ends = np.cumsum([units for units, _ in before])
            cuts = np.searchsorted(places, ends)  # the places are sorted
            for at, (batch, since) in enumerate(self._queues[port]):
                result_arrivals = places[cuts[at - 1] if at else 0 : cuts[at]] - (ends[at - 1] if at else 0)
                left = (
                    batch.pick(np.delete(np.arange(len(batch)), result_arrivals))
                    if len(result_arrivals) and len(batch)
                    else batch
                )
                tells = at == len(before) - 1 and (batch.watermark is not None or batch.ended)
                if not len(result_arrivals) or len(left) or tells:
                    kept.append((left, since))
        self._queues[port] = kept
        after = self.contents(port)
        units, size = (was - now for was, now in zip(_sum_contents(before), _sum_contents(after), strict=True))
        return units, size, kept[0][0].first("seq") if kept else NO_HEAD

    def reset_operator(self, operator: Operator | None) -> None:
        """Clear the failure: continue with this operator, or with the current one if None."""
        self.operator, self.consecutive_failures = operator or self.operator, 0
        self.operator.meter = self.meter

    def copy_for_transfer(self, meter: Callable[[], float | None] | None = None) -> StationState:
        """Return a copy with queues and state for a move to or from another process, and with this meter."""
        handed = copy.copy(self)
        handed.operator = copy.copy(self.operator)
        handed.measure(meter)
        return handed

    def waiting_since(self) -> float:
        return min((queue[0][1] for queue in self._queues if queue), default=NO_HEAD)

    def _arrivals(self, batch: Batch) -> Sequence[float] | Column:
        arrived = batch.arrived
        return arrived if isinstance(arrived, np.ndarray) else RepeatedValue(arrived, batch.rows)

    def _process(self, batch: Batch, port: int) -> Batch:
        try:
            made = self._attempt(batch, port)
        except OPERATOR_EXCEPTIONS as error:
            if not self.rejects_bad_rows:
                raise OperatorError(f"operator {self.name!r} raised {type(error).__name__}: {error}") from error
            return self._process_good_rows(batch, port, error)
        if self.consecutive_failures and len(batch):
            self.consecutive_failures = 0
        return made

    def _attempt(self, batch: Batch, port: int) -> Batch:
        """Return the operator's output; if it raises, drop the dead letters of the attempt."""
        aside = len(self.operator.dead_letters)
        try:
            return self.operator.process(batch, port)
        except OPERATOR_EXCEPTIONS:
            del self.operator.dead_letters[aside:]
            raise

    def _process_good_rows(self, batch: Batch, port: int, error: BaseException) -> Batch:
        """Process the good rows of a batch that the operator raised on; the bad rows become dead letters."""
        if self.operator.atomic:
            made, dead_letters = process_without_bad_rows(lambda part: self._attempt(part, port), batch, error)
            whole = sum(len(aside.batch) for aside in dead_letters) == len(batch)
            self.consecutive_failures = self.consecutive_failures + 1 if whole else 0
        else:  # the operator failed half-way, so its state may be inconsistent
            made, dead_letters, self.consecutive_failures = watermark_only(batch), [dead_letter(batch, error)], math.inf
        self.operator.dead_letters += [aside for aside in dead_letters if len(aside.batch)]
        return made

    def _amount(self, batch: Batch) -> float:
        return batch.total("size") if self.fractional else batch.rows

    def _bytes(self, batch: Batch, size: float) -> float:
        return batch.total("size") * size if self.fractional else batch.memory()

    def _declared_cost(self, batch: Batch) -> float:
        if self.fractional:
            return self.operator.cost * batch.total("size")
        factors = batch.columns.get(f"cost.{self.name}")
        return self.operator.cost * float(batch.total("cost") if factors is None else factors.sum())

    def _take_fraction(self, queue: deque[tuple[Batch, float]], first: Batch, since: float, most: float) -> Batch:
        """Take the pieces of one run: up to `take` tuples in total, the last piece split."""
        amount, last = first.total("size"), first
        while amount < most and queue:
            last, since = queue.popleft()
            amount += last.total("size")
        if amount - most > 1e-12:
            queue.appendleft((replace(last, size=amount - most), since))
            amount = most
        return replace(first, size=amount)


def _sum_contents(contents: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the tuples and bytes of all batches."""
    return sum(units for units, _ in contents), sum(size for _, size in contents)
