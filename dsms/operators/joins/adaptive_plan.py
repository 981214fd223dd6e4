"""Re-plans a multiway join at run time from the measured costs of its operations, and estimates for untried ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from dsms.dataflow import (
    Cost,
    Dataflow,
    DifferenceTerm,
    Estimate,
    Expression,
    Mode,
    Operation,
    Plan,
    StreamTerm,
    best_order,
    enumerate_orders,
    input_streams,
    intermediate_names,
    subexpressions,
    translate,
    work_rate,
)
from dsms.dataflow.join_orders import NotStoredError, window_name
from dsms.errors import PlanError
from dsms.operators.base import DEFAULT_ROW_COST_S
from dsms.operators.joins.inputs import is_join_only
from dsms.operators.joins.state.window_state import InputState

DECAY_FACTOR = 0.5  # the weight of older counts after each decision
REPLAN_COST_RATIO = 0.9  # a new plan must cost less than this fraction of the current one
MAX_EXHAUSTIVE_STREAMS = 5  # with more streams, only some orders are compared
SAMPLE_ROWS = 2048  # from which the distinct values of an attribute are estimated
RECORD_COST_UNITS = 1.5  # the cost of storing a result; a lookup costs 1 and an output 1


@dataclass
class _OperationStats:
    """Counts of an operation's work; older counts decay."""

    items: float = 0
    outputs: float = 0
    seconds: float = 0
    timed: float = 0  # items with a measured time

    def add(self, items: int, outputs: int, seconds: float | None) -> None:
        self.items += items
        self.outputs += outputs
        if seconds is not None:
            self.seconds += seconds
            self.timed += items

    def decay(self) -> None:
        """Reduce the weight of the counts so far; an operation that is no longer used keeps its last ones."""
        if self.items >= 1:
            self.items *= DECAY_FACTOR
            self.outputs *= DECAY_FACTOR
            self.seconds *= DECAY_FACTOR
            self.timed *= DECAY_FACTOR


class CostEstimator:
    """Measures the operations and the arrival rates of a join, and estimates what an operation costs."""

    def __init__(self, expression: Expression, sides: Mapping[str, InputState]) -> None:
        self._parts = {window_name(part): part for part in subexpressions(expression)}
        self._sides = sides
        self._stats: dict[Operation, _OperationStats] = {}
        self._events: dict[str, float] = {}
        self._since: int | None = None

    def record_cost(self, operation: Operation, items: int, outputs: int, seconds: float | None) -> None:
        """Record one call of an operation: items in, items out, and seconds if they were measured."""
        self._stats.setdefault(operation, _OperationStats()).add(items, outputs, seconds)

    def count(self, stream: str, events: int) -> None:
        """Count the insertions and deletions of a stream."""
        self._events[stream] = self._events.get(stream, 0) + events

    def rates(self, watermark: int) -> dict[str, float]:
        """Return the items of each stream per microsecond since the last call; empty on the first call."""
        since, self._since = self._since, watermark
        events, self._events = self._events, {}
        if since is None or watermark <= since:
            return {}
        return {alias: events.get(alias, 0) / (watermark - since) for alias in self._sides}

    def decay(self) -> None:
        """Reduce the weight of all counts so far."""
        for stats in self._stats.values():
            stats.decay()

    def estimate(self) -> Estimate:
        """Return the cost of each operation: measured, or else for keys that are uniform and independent."""
        distinct = {attribute: self._count_distinct(attribute) for attribute in self._attributes()}
        timed = [stats for stats in self._stats.values() if stats.timed and stats.items]
        work = sum(stats.timed * (1 + stats.outputs / stats.items) for stats in timed)
        unit = sum(stats.seconds for stats in timed) / work if work else DEFAULT_ROW_COST_S

        def cost(operation: Operation) -> Cost:
            if operation.kind == "record":
                return Cost(unit * RECORD_COST_UNITS if operation.window in self._parts else 0)
            stats = self._stats.get(operation)
            if stats is None or not stats.items:
                outputs = self._guess_outputs(operation, distinct)
                return Cost(unit * (1 + outputs), outputs)
            outputs = stats.outputs / stats.items
            return Cost(stats.seconds / stats.timed if stats.timed else unit * (1 + outputs), outputs)

        return cost

    def _attributes(self) -> set[str]:
        return {attribute for side in self._sides.values() for attribute in side.layout.attributes}

    def _count_distinct(self, attribute: str) -> float:
        """Estimate the number of distinct values of an attribute from a sample of the youngest rows."""
        most = 1.0
        for side in self._sides.values():
            start, end = side.range
            if attribute not in side.layout.attributes or start == end:
                continue
            sample = np.arange(max(start, end - SAMPLE_ROWS), end)
            count = len(set(side.values((attribute,), sample).columns[0].tolist()))
            most = max(most, count if 2 * count < len(sample) else count * (end - start) / len(sample))
        return most

    def _guess_outputs(self, operation: Operation, distinct: Mapping[str, float]) -> float:
        part = self._parts.get(operation.window)
        size = self._estimate_size(part, distinct) if part else self._count_rows(operation.window)
        matches = size / math.prod(distinct.get(attribute, 1.0) for attribute in operation.on)
        return math.exp(-matches) if operation.kind == "left" else matches

    def _count_rows(self, of: str) -> float:
        start, end = self._sides[of.removeprefix("w_")].range
        return end - start

    def _estimate_size(self, part: Expression, distinct: Mapping[str, float]) -> float:
        """Estimate the number of results of a part of the expression."""
        if isinstance(part, StreamTerm):
            return self._count_rows(window_name(part))
        left = self._estimate_size(part.left, distinct)
        if isinstance(part, DifferenceTerm):
            return left
        keys = math.prod(distinct.get(attribute, 1.0) for attribute in part.on)
        return left * self._estimate_size(part.right, distinct) / keys


class PlanChooser:
    """Chooses the cheapest plan of an expression: among all plans, or greedily for many streams."""

    def __init__(self, expression: Expression, keep: Sequence[str] | None, mode: Mode = "block") -> None:
        self._expression, self._mode = expression, mode
        self._many = len(expression.streams) > MAX_EXHAUSTIVE_STREAMS
        inside = intermediate_names(expression)
        counts = range(len(inside) + 1)
        self._stored: list[tuple[str, ...]] = list(chain.from_iterable(combinations(inside, n) for n in counts))
        if keep is not None:
            self._stored = [tuple(keep)]
        elif self._many:
            self._stored = [(), *((name,) for name in inside), inside]
        self._flows: list[list[list[Dataflow]]] | None = None

    def first(self) -> Plan:
        """Return the plan that stores the fewest intermediate results, in the order of the expression."""
        reason = PlanError(f"no plan for {self._expression}")
        for stored in self._stored:
            try:
                return translate(self._expression, stored)
            except NotStoredError as error:
                reason = error
        raise reason

    def best(self, estimate: Estimate, rates: Mapping[str, float]) -> Plan:
        """Return the plan with the least work; among equals the one that stores the fewest results."""
        plans = [tuple(best_order(flows, estimate, self._mode) for flows in choice) for choice in self._choices()]
        if self._many and is_join_only(self._expression) and () in self._stored:
            plans.insert(
                0,
                tuple(
                    choose_greedy_order(self._expression, part, estimate) for part in input_streams(self._expression)
                ),
            )
        return min(plans, key=lambda plan: work_rate(plan, estimate, rates))

    def better(self, plan: Plan, estimate: Estimate, rates: Mapping[str, float]) -> tuple[Plan, str] | None:
        """Return a plan that is worth the change and a text that describes it; None: keep the current plan."""
        best = self.best(estimate, rates)
        now, then = work_rate(plan, estimate, rates), work_rate(best, estimate, rates)
        if best == plan or then >= REPLAN_COST_RATIO * now:
            return None
        changed = "; ".join(str(flow) for flow, old in zip(best, plan, strict=True) if flow != old)
        return best, f"{changed} (saves {1 - then / now:.0%} of the work)"

    def _choices(self) -> list[list[list[Dataflow]]]:
        if self._flows is None:
            self._flows = list(self._enumerate())
        return self._flows

    def _enumerate(self) -> Iterator[list[list[Dataflow]]]:
        for stored in self._stored:
            try:
                if self._many:
                    yield [[flow] for flow in translate(self._expression, stored)]
                else:
                    names = [part.name for part in input_streams(self._expression)]
                    yield [list(enumerate_orders(self._expression, name, stored)) for name in names]
            except NotStoredError:
                continue


def choose_greedy_order(expression: Expression, source: StreamTerm, estimate: Estimate) -> Dataflow:
    """Order joins greedily: always join the window next in which an item matches the fewest rows."""
    have, left = set(source.attributes), [part for part in input_streams(expression) if part != source]
    operations = [Operation("record", window_name(source))]
    while left:
        able = [part for part in left if have.intersection(part.attributes)]
        steps = {
            part: Operation("join", window_name(part), tuple(sorted(have.intersection(part.attributes))))
            for part in able
        }
        part = min(able, key=lambda part: estimate(steps[part]).outputs)
        operations.append(steps[part])
        have.update(part.attributes)
        left.remove(part)
    return Dataflow(source.name, (*operations, Operation("record", "w_out")))
