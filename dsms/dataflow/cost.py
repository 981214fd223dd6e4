"""How long an item takes through a dataflow expression, what work a plan is, and which plan is the best.

Getta, Vossough: each operation takes a time per item and puts out so many items per item; in block mode it starts when
the one before it is done, in item mode as soon as there is an item for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from operator import mul
from typing import Literal

from dsms.dataflow.expression import Expression, inputs, intermediates
from dsms.dataflow.operation import Dataflow, Operation
from dsms.dataflow.translate import NotStoredError, Plan, orders
from dsms.errors import PlanError

Mode = Literal["block", "item"]
MODES = ("block", "item")


@dataclass(frozen=True)
class Cost:
    """The mean time an operation takes per item, and the mean number of items it puts out for one."""

    time: float
    outputs: float = 1

    def __post_init__(self) -> None:
        if not (0 <= self.time < math.inf and 0 <= self.outputs < math.inf):
            raise PlanError(f"an operation takes {self.time} and puts out {self.outputs}: both are finite, from 0 up")


Estimate = Callable[[Operation], Cost]


def duration(costs: Sequence[Cost], mode: Mode = "block") -> float:
    """T: the time from an item's arrival until it is through."""
    return sum(delays(costs, mode))


def delays(costs: Sequence[Cost], mode: Mode = "block") -> list[float]:
    """After how long each operation is followed by the next; after the last, by the end.

    In item mode an operation begins with the first item it is given and not the last: the mean of the two counts. That
    is a delay, not work: it is half an item even where nothing arrives.
    """
    if mode not in MODES:
        raise PlanError(f"no mode {mode!r}; there are {list(MODES)}")
    items: Iterator[float] = accumulate((cost.outputs for cost in costs), mul, initial=1)
    if mode == "block":
        return [count * cost.time for count, cost in zip(items, costs, strict=False)]
    return [(1 + count) * cost.time / 2 for count, cost in zip(items, costs, strict=False)]


def duration_of(flow: Dataflow, estimate: Estimate, mode: Mode = "block") -> float:
    """T of a dataflow expression, by the costs of its operations."""
    return duration([estimate(operation) for operation in flow.operations], mode)


def best_order(flows: Iterable[Dataflow], estimate: Estimate, mode: Mode = "block") -> Dataflow:
    """The one of several orders that takes an item the least time; of equals the first."""
    return min(flows, key=lambda flow: duration_of(flow, estimate, mode))


def work_rate(plan: Plan, estimate: Estimate, arrivals: Mapping[str, float]) -> float:
    """The work of a plan per unit of time: above 1 it cannot keep up; only block mode's T is work."""
    return sum(arrivals[flow.stream] * duration_of(flow, estimate) for flow in plan)


def best_plan(expression: Expression, estimate: Estimate, arrivals: Mapping[str, float]) -> Plan:
    """The plan of the least work, over every choice of results to store and of orders; of equals the least stored.

    It looks at all of them: exponentially many in the number of streams.
    """
    if missing := sorted(set(expression.streams).difference(arrivals)):
        raise PlanError(f"no arrival rate of {missing}; there are {sorted(arrivals)}")
    candidates: list[Plan] = []
    inside = intermediates(expression)
    for count in range(len(inside) + 1):
        for stored in combinations(inside, count):
            try:
                found = [best_order(orders(expression, part.name, stored), estimate) for part in inputs(expression)]
            except NotStoredError:  # there are others: with everything stored there always is a plan
                continue
            candidates.append(tuple(found))
    return min(candidates, key=lambda plan: work_rate(plan, estimate, arrivals))


@dataclass(frozen=True)
class Detour:
    """An item of t that meets r join s: in a window w_rs, or by way of w_s and w_r; times as in the paper's section."""

    record_s: float
    record_t: float
    record_rs: float
    join_r: float
    join_s: float
    join_rs: float
    outputs_s: float  # how many items of s an item of t meets

    @classmethod
    def of(cls, estimate: Estimate, with_window: Dataflow, without: Dataflow) -> Detour:
        """By the costs of an item's operations on its two ways: record, join rs; and record, join s, join r."""
        record, join_rs = (estimate(operation) for operation in with_window.operations[:2])
        _, join_s, join_r = (estimate(operation) for operation in without.operations[:3])
        recorded = estimate(Operation("record", with_window.operations[1].window))
        return cls(record.time, record.time, recorded.time, join_r.time, join_s.time, join_rs.time, join_s.outputs)

    def wait(self, since: float) -> float:
        """Equation 2: how long an item of t waits until w_rs has what an item of s brought that came so long before."""
        return max(0, self.record_s + self.join_r + self.record_rs - (since + self.record_t))

    def with_window(self, since: float) -> float:
        """T of an item of t that is joined with w_rs."""
        return self.record_t + self.join_rs + self.wait(since)

    def without_window(self) -> float:
        """T of an item of t that is joined with w_s, then with w_r."""
        return self.record_t + self.join_s + self.outputs_s * self.join_r

    def longest_wait(self) -> float:
        """The right side of equation 1: the wait from which on the window no longer pays; negative if it never does."""
        return self.join_s + self.outputs_s * self.join_r - self.join_rs

    def worthwhile(self, since: float) -> bool:
        """Equation 1: whether an item of t is through sooner with the window; at a tie the window is not worth it."""
        return self.wait(since) < self.longest_wait()

    def worthwhile_at(self, rate_t: float, results: float) -> bool:
        """Whether the window saves more work on t than its upkeep costs, at so many items of t and of r join s a time.

        Equation 1 forgets the rates as soon as nobody waits; what the streams' rates decide is this.
        """
        return results * self.record_rs < rate_t * self.longest_wait()
