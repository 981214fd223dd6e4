"""The cost model of dataflow plans: the time of an item, the work of a plan, and the choice of the best plan.

Getta, Vossough: each operation takes a mean time per item and emits a mean number of items per item. In block mode it
starts when the operation before it is done; in item mode as soon as an item is available.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from operator import mul
from typing import Literal

from dsms.dataflow.expression import Expression, input_streams, intermediate_names
from dsms.dataflow.join_orders import NotStoredError, Plan, enumerate_orders
from dsms.dataflow.operation import Dataflow, Operation
from dsms.errors import PlanError

Mode = Literal["block", "item"]
MODES = ("block", "item")


@dataclass(frozen=True)
class Cost:
    """The mean time of an operation per item, and the mean number of items that it emits per item."""

    time: float
    outputs: float = 1

    def __post_init__(self) -> None:
        if not (0 <= self.time < math.inf and 0 <= self.outputs < math.inf):
            raise PlanError(f"time is {self.time} and outputs is {self.outputs}: both must be finite, 0 or more")


Estimate = Callable[[Operation], Cost]


def total_time(costs: Sequence[Cost], mode: Mode = "block") -> float:
    """Return T, the time from an item's arrival until it has passed all operations."""
    return sum(operation_start_times(costs, mode))


def operation_start_times(costs: Sequence[Cost], mode: Mode = "block") -> list[float]:
    """Return the delay from the start of each operation to the start of the next, and from the last to the end.

    In item mode an operation starts with the first item it gets, not the last; the mean of the two counts. That is a
    delay, not work: it is half an item even if no item arrives.
    """
    if mode not in MODES:
        raise PlanError(f"no mode {mode!r}; there are {list(MODES)}")
    items: Iterator[float] = accumulate((cost.outputs for cost in costs), mul, initial=1)
    if mode == "block":
        return [count * cost.time for count, cost in zip(items, costs, strict=False)]
    return [(1 + count) * cost.time / 2 for count, cost in zip(items, costs, strict=False)]


def dataflow_time(flow: Dataflow, estimate: Estimate, mode: Mode = "block") -> float:
    """Return T of a dataflow expression from the costs of its operations."""
    return total_time([estimate(operation) for operation in flow.operations], mode)


def best_order(flows: Iterable[Dataflow], estimate: Estimate, mode: Mode = "block") -> Dataflow:
    """Return the order with the least time per item; among equals the first."""
    return min(flows, key=lambda flow: dataflow_time(flow, estimate, mode))


def work_rate(plan: Plan, estimate: Estimate, arrivals: Mapping[str, float]) -> float:
    """Return the work of a plan per unit of time; above 1 it cannot keep up. Only block mode's T is work."""
    return sum(arrivals[flow.stream] * dataflow_time(flow, estimate) for flow in plan)


def best_plan(expression: Expression, estimate: Estimate, arrivals: Mapping[str, float]) -> Plan:
    """Return the plan with the least work, over all choices of stored results and orders.

    Among equals it is the one that stores the fewest. It compares exponentially many plans in the number of streams.
    """
    if missing := sorted(set(expression.streams).difference(arrivals)):
        raise PlanError(f"no arrival rate of {missing}; there are {sorted(arrivals)}")
    candidates: list[Plan] = []
    inside = intermediate_names(expression)
    for count in range(len(inside) + 1):
        for stored in combinations(inside, count):
            try:
                flows = [
                    best_order(enumerate_orders(expression, part.name, stored), estimate)
                    for part in input_streams(expression)
                ]
            except NotStoredError:  # other choices work: with everything stored there is always a plan
                continue
            candidates.append(tuple(flows))
    return min(candidates, key=lambda plan: work_rate(plan, estimate, arrivals))


@dataclass(frozen=True)
class WindowTradeoff:
    """Whether an item of t should join a stored window w_rs, or first w_s and then w_r; names as in the paper."""

    record_s: float
    record_t: float
    record_rs: float
    join_r: float
    join_s: float
    join_rs: float
    outputs_s: float  # items of s that match an item of t

    @classmethod
    def of(cls, estimate: Estimate, with_window: Dataflow, without: Dataflow) -> WindowTradeoff:
        """Read the costs from the two orders: record, join rs; and record, join s, join r."""
        record, join_rs = (estimate(operation) for operation in with_window.operations[:2])
        _, join_s, join_r = (estimate(operation) for operation in without.operations[:3])
        recorded = estimate(Operation("record", with_window.operations[1].window))
        return cls(record.time, record.time, recorded.time, join_r.time, join_s.time, join_rs.time, join_s.outputs)

    def wait(self, since: float) -> float:
        """Return how long an item of t waits until w_rs has the results of an item of s that arrived `since` before it.

        Equation 2.
        """
        return max(0, self.record_s + self.join_r + self.record_rs - (since + self.record_t))

    def with_window(self, since: float) -> float:
        """Return T of an item of t that is joined with w_rs."""
        return self.record_t + self.join_rs + self.wait(since)

    def without_window(self) -> float:
        """Return T of an item of t that is joined with w_s, then with w_r."""
        return self.record_t + self.join_s + self.outputs_s * self.join_r

    def longest_wait(self) -> float:
        """Return the wait above which the window does not pay (equation 1, right side); negative: it never does."""
        return self.join_s + self.outputs_s * self.join_r - self.join_rs

    def worthwhile(self, since: float) -> bool:
        """Whether an item of t is faster with the window, by equation 1; at a tie the window is not worth it."""
        return self.wait(since) < self.longest_wait()

    def worthwhile_at(self, rate_t: float, results: float) -> bool:
        """Whether the window saves more work on t than its upkeep costs, at these rates of t and of r join s.

        Equation 1 ignores the rates when no item waits; this one does not.
        """
        return results * self.record_rs < rate_t * self.longest_wait()
