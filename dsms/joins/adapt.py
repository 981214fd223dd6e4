"""Better plans while a join runs: from what its operations were seen to do, and a guess at those not tried yet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from dsms.dataflow import (
    Cost,
    Dataflow,
    Difference,
    Estimate,
    Expression,
    Mode,
    Operation,
    Plan,
    Stream,
    best_order,
    inputs,
    intermediates,
    orders,
    parts,
    translate,
    work_rate,
)
from dsms.dataflow.translate import NotStoredError, window
from dsms.errors import PlanError
from dsms.joins.inputs import pure
from dsms.joins.sides import InputSide
from dsms.operators.base import ROW_COST

SMOOTH = 0.5  # how much of what was counted still counts after a decision
BETTER = 0.9  # a plan is changed for one of less than this part of its work
ALL = 5  # streams up to which all orders are looked at
SAMPLE = 2048  # rows by which the different values of an attribute are counted
RECORD = 1.5  # the work of recording a result, where looking an item up is 1 and putting one out is 1


@dataclass
class _Tally:
    """What an operation has done."""

    items: float = 0
    outputs: float = 0
    seconds: float = 0
    timed: float = 0  # items of which the time is known

    def add(self, items: int, outputs: int, seconds: float | None) -> None:
        self.items += items
        self.outputs += outputs
        if seconds is not None:
            self.seconds += seconds
            self.timed += items

    def fade(self) -> None:
        """Older counts count less; the last ones of an operation no longer in use stay what is known of it."""
        if self.items >= 1:
            self.items *= SMOOTH
            self.outputs *= SMOOTH
            self.seconds *= SMOOTH
            self.timed *= SMOOTH


class Scales:
    """Counts what operations do and how fast streams come, and says what an operation is likely to cost."""

    def __init__(self, expression: Expression, sides: Mapping[str, InputSide]) -> None:
        self._parts = {window(part): part for part in parts(expression)}
        self._sides = sides
        self._tallies: dict[Operation, _Tally] = {}
        self._events: dict[str, float] = {}
        self._begun: int | None = None

    def weigh(self, operation: Operation, items: int, outputs: int, seconds: float | None) -> None:
        """An operation has made so many items of so many, in so much time if that is known."""
        self._tallies.setdefault(operation, _Tally()).add(items, outputs, seconds)

    def count(self, stream: str, events: int) -> None:
        """So many items of a stream have come or gone."""
        self._events[stream] = self._events.get(stream, 0) + events

    def rates(self, upto: int) -> dict[str, float]:
        """Items of each stream a microsecond since the last time; none if that is not known yet."""
        begun, self._begun = self._begun, upto
        events, self._events = self._events, {}
        if begun is None or upto <= begun:
            return {}
        return {alias: events.get(alias, 0) / (upto - begun) for alias in self._sides}

    def fade(self) -> None:
        """What comes from now on counts more than what has been."""
        for tally in self._tallies.values():
            tally.fade()

    def estimate(self) -> Estimate:
        """What each operation costs: as measured, or else as it would with keys spread evenly and independently."""
        different = {attribute: self._different(attribute) for attribute in self._attributes()}
        timed = [tally for tally in self._tallies.values() if tally.timed and tally.items]
        work = sum(tally.timed * (1 + tally.outputs / tally.items) for tally in timed)
        unit = sum(tally.seconds for tally in timed) / work if work else ROW_COST

        def cost(operation: Operation) -> Cost:
            if operation.kind == "record":
                return Cost(unit * RECORD if operation.window in self._parts else 0)
            tally = self._tallies.get(operation)
            if tally is None or not tally.items:
                outputs = self._guess(operation, different)
                return Cost(unit * (1 + outputs), outputs)
            outputs = tally.outputs / tally.items
            return Cost(tally.seconds / tally.timed if tally.timed else unit * (1 + outputs), outputs)

        return cost

    def _attributes(self) -> set[str]:
        return {attribute for side in self._sides.values() for attribute in side.layout.attributes}

    def _different(self, attribute: str) -> float:
        """How many values of an attribute are about, by a sample of the youngest rows."""
        most = 1.0
        for side in self._sides.values():
            start, end = side.range
            if attribute not in side.layout.attributes or start == end:
                continue
            sample = np.arange(max(start, end - SAMPLE), end)
            found = len(set(side.values((attribute,), sample).columns[0].tolist()))
            most = max(most, found if 2 * found < len(sample) else found * (end - start) / len(sample))
        return most

    def _guess(self, operation: Operation, different: Mapping[str, float]) -> float:
        part = self._parts.get(operation.window)
        size = self._size(part, different) if part else self._rows(operation.window)
        matches = size / math.prod(different.get(attribute, 1.0) for attribute in operation.on)
        return math.exp(-matches) if operation.kind == "left" else matches

    def _rows(self, of: str) -> float:
        start, end = self._sides[of.removeprefix("w_")].range
        return end - start

    def _size(self, part: Expression, different: Mapping[str, float]) -> float:
        """How many results a part of the expression may have."""
        if isinstance(part, Stream):
            return self._rows(window(part))
        left = self._size(part.left, different)
        if isinstance(part, Difference):
            return left
        apart = math.prod(different.get(attribute, 1.0) for attribute in part.on)
        return left * self._size(part.right, different) / apart


class Adviser:
    """All plans of an expression, or for many streams those that a greedy choice finds."""

    def __init__(self, expression: Expression, keep: Sequence[str] | None, mode: Mode = "block") -> None:
        self._expression, self._mode = expression, mode
        self._many = len(expression.streams) > ALL
        inside = intermediates(expression)
        counts = range(len(inside) + 1)
        self._stored: list[tuple[str, ...]] = list(chain.from_iterable(combinations(inside, n) for n in counts))
        if keep is not None:
            self._stored = [tuple(keep)]
        elif self._many:
            self._stored = [(), *((name,) for name in inside), inside]
        self._flows: list[list[list[Dataflow]]] | None = None

    def first(self) -> Plan:
        """The plan that stores the fewest results, in the order of the expression."""
        reason = PlanError(f"no plan for {self._expression}")
        for stored in self._stored:
            try:
                return translate(self._expression, stored)
            except NotStoredError as error:
                reason = error
        raise reason

    def best(self, estimate: Estimate, rates: Mapping[str, float]) -> Plan:
        """The plan of the least work; of equals the least stored."""
        plans = [tuple(best_order(flows, estimate, self._mode) for flows in choice) for choice in self._choices()]
        if self._many and pure(self._expression) and () in self._stored:
            plans.insert(0, tuple(greedy(self._expression, part, estimate) for part in inputs(self._expression)))
        return min(plans, key=lambda plan: work_rate(plan, estimate, rates))

    def better(self, plan: Plan, estimate: Estimate, rates: Mapping[str, float]) -> tuple[Plan, str] | None:
        """A plan that is worth the change, and what to say of it."""
        best = self.best(estimate, rates)
        now, then = work_rate(plan, estimate, rates), work_rate(best, estimate, rates)
        if best == plan or then >= BETTER * now:
            return None
        changed = "; ".join(str(flow) for flow, old in zip(best, plan, strict=True) if flow != old)
        return best, f"{changed} (saves {1 - then / now:.0%} of the work)"

    def _choices(self) -> list[list[list[Dataflow]]]:
        if self._flows is None:
            self._flows = list(self._possible())
        return self._flows

    def _possible(self) -> Iterator[list[list[Dataflow]]]:
        for stored in self._stored:
            try:
                if self._many:
                    yield [[flow] for flow in translate(self._expression, stored)]
                else:
                    names = [part.name for part in inputs(self._expression)]
                    yield [list(orders(self._expression, name, stored)) for name in names]
            except NotStoredError:
                continue


def greedy(expression: Expression, source: Stream, estimate: Estimate) -> Dataflow:
    """Of joins alone: next always the window in which an item meets the fewest."""
    have, left = set(source.attributes), [part for part in inputs(expression) if part != source]
    operations = [Operation("record", window(source))]
    while left:
        able = [part for part in left if have.intersection(part.attributes)]
        steps = {
            part: Operation("join", window(part), tuple(sorted(have.intersection(part.attributes)))) for part in able
        }
        part = min(able, key=lambda part: estimate(steps[part]).outputs)
        operations.append(steps[part])
        have.update(part.attributes)
        left.remove(part)
    return Dataflow(source.name, (*operations, Operation("record", "w_out")))
