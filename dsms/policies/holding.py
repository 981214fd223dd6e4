"""What is held on average: tuples in the queues, and the results that may be expected of them; and what has left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dsms.observers import Observer
from dsms.plan import Plan
from dsms.policies.by_chart import size_read
from dsms.runners.base import NONE, Step
from dsms.segment import Segment
from dsms.statistics import Statistics

if TYPE_CHECKING:
    from dsms.engine import Engine

EVERY = 16  # turns between two looks at all queues
MEMORY = 2000  # looks after which the past counts no more than the latest
STEP = 1.1  # a ratio that has changed by less leaves priorities as they are


class Holding(Observer):
    """Running means over time, looked at now and then; whoever ranks by them is told when their ratios have moved."""

    trusted = True

    def __init__(self, plan: Plan, statistics: Statistics) -> None:
        self._plan, self._statistics = plan, statistics
        self._turns = 0
        self._looks = 0
        self._last = 0.0  # instant of the last look
        self._spans = 0.0  # mean time between looks
        self._tuples = 0.0  # means of what is held, by that time
        self._results = 0.0
        self._left: float = 0  # results that have left
        self._said = (0.0, 0.0)

    def attach(self, engine: Engine) -> None:
        self._engine = engine
        self._last = engine.clock.now()
        self._said = self.tuples_per_result(), self.pending_part()

    def tuples_per_result(self) -> float:
        """M̄/Q̄; before anything is seen, what it is for tuples that have just come."""
        if self._results > 0:
            return self._tuples / self._results
        chances = self._chances()
        held = results = 0.0
        for stream in self._plan.streams:
            for station in stream.consumers:
                inflow = self._statistics.of(station).inflows[station.inputs.index(stream)]
                held += inflow * size_read(stream, self._plan)
                results += inflow * chances[station.index]
        return held / max(results, 1e-9)

    def pending_part(self) -> float:
        """Q̄ to the results that have left; before there are as many as Q̄, 1."""
        pending = self._results / self._spans if self._spans else 0.0
        return min(1.0, pending / self._left) if self._left else 1.0

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for step in steps:
            if step[5] is not NONE:
                self._left += step[2]
        self._turns += 1
        if self._turns % EVERY == 0:
            self._look(start)

    def _look(self, now: float) -> None:
        span, self._last = now - self._last, now
        self._looks = min(self._looks + 1, MEMORY)
        chances = self._chances()
        held = results = 0.0
        for queue in self._engine.ledger.queues:
            if queue.count:
                producer = queue.station.inputs[queue.port]
                held += queue.count * size_read(producer, self._plan)
                results += queue.count * chances[queue.station.index]
        self._spans += (span - self._spans) / self._looks
        self._tuples += (held * span - self._tuples) / self._looks
        self._results += (results * span - self._results) / self._looks
        moved = self.tuples_per_result(), self.pending_part()
        if any(not said / STEP <= value <= said * STEP for said, value in zip(self._said, moved, strict=True)):
            self._said = moved
            self._engine.recut()

    def _chances(self) -> list[float]:
        """By station, the results to be expected of a tuple before it."""
        chances = [0.0] * len(self._plan.stations)
        for station in reversed(self._plan.stations):
            passed = float(station.sink) + sum(chances[consumer.index] for consumer in station.consumers)
            chances[station.index] = self._statistics.of(station).selectivity * passed
        return chances
