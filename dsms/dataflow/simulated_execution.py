"""Simulates the concurrent execution of a dataflow plan, one operation at a time, in any allowed interleaving.

Getta, Vossough: each item runs its dataflow expression as a transaction that is never rolled back. Concurrent items
stay correct either because operations wait (the scheduling graph) or because they read only lower timestamps. A result
that is written too late to an intermediate window gets a higher timestamp. For study only: no engine uses it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, permutations
from random import Random
from typing import Literal, NamedTuple

from dsms.dataflow.conflicts import Matrix, conflict_matrix, number_operations
from dsms.dataflow.cost import MODES, Mode
from dsms.dataflow.expression import RESULT_WINDOW
from dsms.dataflow.join_orders import Plan
from dsms.dataflow.operation import Operation
from dsms.dataflow.scheduling_graph import Node, SchedulingGraph
from dsms.dataflow.simulated_window import Contents, DataflowWindow, Row, WindowChange
from dsms.errors import PlanError, existing

Order = Literal["serial", "preserving", "weak"] | int
ORDERS = ("serial", "preserving", "weak")
Choose = Callable[[Sequence[Node]], Node]
States = Sequence[Contents]


class StreamItem(NamedTuple):
    """An item of a stream: values by attribute, inserted (1) or deleted (-1)."""

    stream: str
    values: Mapping[str, Hashable]
    sign: int = 1


@dataclass(frozen=True)
class DataflowRun:
    """The outcome of an execution."""

    states: tuple[Contents, ...]  # of w_out, when each item and all items before it are done
    edges: int  # the total number of dashed edges
    waited: tuple[int, ...]  # steps of other items between each item's arrival and its end
    ran: tuple[Node, ...]  # the operation of each step
    handled: tuple[int, ...]  # the number of changes that each step processed
    written: tuple[tuple[Row, int], ...]  # every signed result, in the order of writing

    @property
    def final(self) -> Contents:
        """The final contents of w_out."""
        return self.states[-1] if self.states else {}


@dataclass(frozen=True)
class DataflowExecution:
    """The rules by which items run through a plan.

    `serial`: one after the other. `preserving`: concurrently with all dashed edges, so that every state equals the
    serial one. `weak`: without them, by timestamps alone. A number k: weak, but after every k items the next ones wait
    until those are done. Tests switch `timestamps` and `raised` off to show why they are needed.
    """

    plan: Plan
    order: Order = "preserving"
    timestamps: bool = True  # an operation reads only changes with a lower timestamp than its item
    raised: bool = True  # a late intermediate result gets a timestamp above all that it missed; not if preserving
    rows: Mapping[str, int] = field(default_factory=dict)  # the window lengths of some streams, in rows
    mode: Mode = "block"  # or "item": an operation starts before the one before it has emitted everything
    gap: int = 0  # steps between arrivals
    conflicts: Matrix | None = None  # replaces the conflicts that the order implies

    def __post_init__(self) -> None:
        if not (self.order in ORDERS or (isinstance(self.order, int) and self.order > 0)):
            raise PlanError(f"no order {self.order!r}; there are {list(ORDERS)} and integers from 1")
        if self.mode not in MODES:
            raise PlanError(f"no mode {self.mode!r}; there are {list(MODES)}")
        streams = {flow.stream for flow in self.plan}
        for name, rows in self.rows.items():
            if name not in streams or rows < 1:
                raise PlanError(f"{rows} rows in the window of {name!r}: it must be 1 or more{existing(name, streams)}")

    def run(self, items: Sequence[StreamItem], choose: Choose | int = 0) -> DataflowRun:
        """Run all items to their end; `choose` picks the next operation that may start, or is a random seed."""
        return _Simulator(self).run(items, choose if callable(choose) else Random(choose).choice)

    @property
    def matrix(self) -> Matrix:
        """The conflicts by which operations of two pending items keep the order of arrival."""
        if self.conflicts is not None:
            return self.conflicts
        if self.order == "preserving":
            return conflict_matrix(self.plan, timestamps=self.timestamps, by_arrival=True)
        # The eviction from a window of rows depends on the order of insertion, so each stream records in order there.
        limited = {f"w_{name}" for name in self.rows}
        operations = [operation for _, operation in number_operations(self.plan)]
        return tuple(tuple(one == other and bool(one.writes & limited) for other in operations) for one in operations)

    @property
    def max_concurrent(self) -> int | None:
        """The number of items admitted before the next ones wait for all of them; None: no limit."""
        return self.order if isinstance(self.order, int) else 1 if self.order == "serial" else None


class _Simulator:
    """One run: the windows, the scheduling graph, and the changes queued between operations."""

    def __init__(self, execution: DataflowExecution) -> None:
        self.execution = execution
        self.operations: list[Operation] = [operation for _, operation in number_operations(execution.plan)]
        self.graph = SchedulingGraph.of(execution.plan, execution.matrix)
        self.raising = execution.raised and execution.order != "preserving"
        self.windows = {name: DataflowWindow() for operation in self.operations for name in operation.writes}
        self.windows.update({f"w_{name}": DataflowWindow(rows) for name, rows in execution.rows.items()})
        self.arrivals = {f"w_{flow.stream}" for flow in execution.plan}
        self.out = self.windows[f"w_{RESULT_WINDOW}"]
        self.queues: dict[Node, list[WindowChange]] = defaultdict(list)
        self.stamps = count()
        self.edges = 0
        self.ran: list[Node] = []
        self.handled: list[int] = []
        self.done: dict[int, int] = {}  # items with the step of their end
        self.states: list[Contents] = []

    def run(self, items: Sequence[StreamItem], choose: Choose) -> DataflowRun:
        step = 0
        while len(self.done) < len(items):
            step = self._admit(items, step)
            node = choose(self._ready())
            self.handled.append(self._operate(node))
            self.ran.append(node)
            step += 1
            self._complete(node.item, step)
        own = Counter(node.item for node in self.ran)
        waited = tuple(self.done[i] - i * self.execution.gap - own[i] for i in range(len(items)))
        written = tuple((change.row, change.sign) for change in self.out.log)
        return DataflowRun(tuple(self.states), self.edges, waited, tuple(self.ran), tuple(self.handled), written)

    def _admit(self, items: Sequence[StreamItem], step: int) -> int:
        """Admit the items that have arrived and need not wait; if none is pending, advance to the next arrival."""
        gap, limit = self.execution.gap, self.execution.max_concurrent
        while (number := self.graph.arrived) < len(items):
            if self.graph.chains:
                if number * gap > step or (limit and number % limit == 0):
                    break
            else:
                step = max(step, number * gap)
            item, waits = items[number], self.graph.waits
            if item.sign not in (1, -1):
                raise PlanError(f"item {number} has the sign {item.sign}: it must be 1 or -1")
            self.graph = self.graph.arrive(item.stream)
            self.edges += self.graph.waits - waits
            self.queues[self.graph.chains[-1][0]] = [
                WindowChange(frozenset(item.values.items()), item.sign, item=number)
            ]
        return step

    def _ready(self) -> list[Node]:
        """Return the operations that have queued changes and no incoming dashed edge."""
        held = {node for _, node in self.graph.dashed}
        reach = 1 if self.execution.mode == "block" else None
        return [node for chain in self.graph.chains for node in chain[:reach] if self.queues[node] and node not in held]

    def _operate(self, node: Node) -> int:
        """Run one step: an operation processes all queued changes, in item mode the first; return their number."""
        operation, waiting = self.operations[node.row], self.queues[node]
        taken = waiting if self.execution.mode == "block" else waiting[:1]
        self.queues[node] = waiting[len(taken) :]
        handle = self._record if operation.kind == "record" else self._read
        outputs = [output for change in taken for output in handle(operation, change)]
        if operation.window != f"w_{RESULT_WINDOW}":
            self.queues[Node(node.item, node.row + 1)] += outputs
        return len(taken)

    def _complete(self, item: int, step: int) -> None:
        """Remove an item's finished operations from the graph, and record the state if all items before it are done."""
        chain = next(chain for chain in self.graph.chains if chain[0].item == item)
        for i, node in enumerate(chain):
            if self.queues[node]:
                return
            if not any(self.queues[later] for later in chain[i:]):
                self.graph = self.graph.complete(node, empty=True)
                break
            self.graph = self.graph.complete(node)
        self.done[item] = step
        while len(self.states) in self.done:
            self.states.append(self.out.contents)

    def _record(self, operation: Operation, change: WindowChange) -> Iterator[WindowChange]:
        """Write a change after the evictions that it causes, each with its own timestamp, in the same step."""
        window = self.windows[operation.window]
        first = operation.window in self.arrivals
        for row, sign in window.relocate(change.row, change.sign):
            late = self.raising and change.stamp <= window.highest
            stamp = next(self.stamps) if first or late else change.stamp
            yield window.write(row, sign, stamp, change.item)

    def _read(self, operation: Operation, change: WindowChange) -> Iterator[WindowChange]:
        """Return the changes that a change causes with its matching rows."""

        def seen(other: WindowChange) -> bool:
            return not self.execution.timestamps or other.stamp < change.stamp

        matches = self.windows[operation.window].matching(change, operation.on, seen)
        if operation.kind == "left":
            if sum(matches.values()) <= 0:  # as in `_presence_change`: a deletion may precede its insertion
                yield change
            return
        sign = change.sign if operation.kind == "join" else -self._presence_change(operation, change)
        for row, number in matches.items() if sign else ():
            joined = row | change.row if operation.kind == "join" else row
            for _ in range(abs(number)):
                yield change._replace(row=joined, sign=sign if number > 0 else -sign)

    def _presence_change(self, operation: Operation, change: WindowChange) -> int:
        """Return 1 if a change inserts the first equal row into its own window, -1 if it deletes the last, else 0.

        Changes of the same item count up to the change itself, with timestamps or without.
        """

        def seen(other: WindowChange) -> bool:
            if self.execution.timestamps or other.item == change.item:
                return (other.stamp, other.place) < (change.stamp, change.place)
            return True

        own = self.windows[operation.own or operation.window]
        before = sum(own.matching(change, operation.on, seen).values())
        return (before + change.sign > 0) - (before > 0)


def is_order_preserving(states: States, serial: States) -> bool:
    """Whether every state equals that of the serial execution."""
    return list(states) == list(serial)


def is_weakly_order_preserving(states: States, serial: States) -> bool:
    """Whether at least one state equals that of the serial execution."""
    return any(state == expected for state, expected in zip(states, serial, strict=True))


def is_equal_every(k: int, states: States, serial: States) -> bool:
    """Whether the state equals that of the serial execution after every k items."""
    return list(states)[k - 1 :: k] == list(serial)[k - 1 :: k]


def is_order_invariant(
    plan: Plan, items: Sequence[StreamItem], *, rows: Mapping[str, int] | None = None, limit: int = 720, seed: int = 0
) -> bool:
    """Whether items give the same final result in every order; of more than `limit` orders, that many are drawn."""
    serial, chance = DataflowExecution(plan, "serial", rows=rows or {}), Random(seed)
    all_orders = math.factorial(len(items)) <= limit
    orders = permutations(items) if all_orders else (chance.sample(items, len(items)) for _ in range(limit))
    expected = serial.run(items).final
    return all(serial.run(order).final == expected for order in islice(orders, limit))
