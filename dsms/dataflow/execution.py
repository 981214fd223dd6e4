"""Items through a plan one operation at a time, in any interleaving that the wanted order allows.

Getta, Vossough: each item starts its dataflow expression as a transaction that is never undone. What keeps concurrent
ones right is either that operations wait (the scheduling graph) or that they read only what has a lower timestamp; with
windows of intermediate results, what is written there too late is given a higher one. For study: nothing runs for real.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, permutations
from random import Random
from typing import Literal, NamedTuple

from dsms.dataflow.conflicts import Matrix, conflict_matrix, numbered
from dsms.dataflow.cost import MODES, Mode
from dsms.dataflow.expression import RESULT
from dsms.dataflow.graph import Node, SchedulingGraph
from dsms.dataflow.operation import Operation
from dsms.dataflow.translate import Plan
from dsms.dataflow.window import Change, Contents, Row, Window
from dsms.errors import PlanError, existing

Order = Literal["serial", "preserving", "weak"] | int
ORDERS = ("serial", "preserving", "weak")
Choose = Callable[[Sequence[Node]], Node]
States = Sequence[Contents]


class Item(NamedTuple):
    """What arrives on a stream: values by attribute, which come (1) or go (-1)."""

    stream: str
    values: Mapping[str, Hashable]
    sign: int = 1


@dataclass(frozen=True)
class Run:
    """What came of an execution."""

    states: tuple[Contents, ...]  # of w_out, as soon as this item and all before it are done
    edges: int  # how many dashed edges were ever drawn
    waited: tuple[int, ...]  # of each item, the steps from its arrival to its end that were not its own
    ran: tuple[Node, ...]  # whose turn it was, step by step
    handled: tuple[int, ...]  # how many changes it took at each of these steps
    written: tuple[tuple[Row, int], ...]  # every signed result, in the order of writing

    @property
    def final(self) -> Contents:
        """What is in w_out in the end."""
        return self.states[-1] if self.states else {}


@dataclass(frozen=True)
class Execution:
    """How items go through a plan.

    `serial`: one after the other; `preserving`: concurrently with all dashed edges, so that every state is the serial
    one; `weak`: without them, by timestamps alone; a number k: weak, but after every k items the next ones are held
    until those are done. Switched off, `timestamps` and `raised` show what they are for.
    """

    plan: Plan
    order: Order = "preserving"
    timestamps: bool = True  # an operation reads only what has a lower timestamp than its item
    raised: bool = True  # a late intermediate result gets a timestamp above all it has missed; not if preserving
    rows: Mapping[str, int] = field(default_factory=dict)  # how many rows the windows of some streams hold
    mode: Mode = "block"  # or "item": an operation starts before the one in front of it has put out everything
    gap: int = 0  # steps between arrivals
    conflicts: Matrix | None = None  # instead of those that the order asks for

    def __post_init__(self) -> None:
        if not (self.order in ORDERS or (isinstance(self.order, int) and self.order > 0)):
            raise PlanError(f"no order {self.order!r}; there are {list(ORDERS)} and whole numbers from 1 up")
        if self.mode not in MODES:
            raise PlanError(f"no mode {self.mode!r}; there are {list(MODES)}")
        streams = {flow.stream for flow in self.plan}
        for name, rows in self.rows.items():
            if name not in streams or rows < 1:
                raise PlanError(f"{rows} rows in the window of {name!r}: from 1 up{existing(name, streams)}")

    def run(self, items: Sequence[Item], choose: Choose | int = 0) -> Run:
        """All items to their end; `choose` picks the next of the operations that may start, or is a seed to do so."""
        return _Machine(self).run(items, choose if callable(choose) else Random(choose).choice)

    @property
    def matrix(self) -> Matrix:
        """Which operations of two pending items keep the order of arrival."""
        if self.conflicts is not None:
            return self.conflicts
        if self.order == "preserving":
            return conflict_matrix(self.plan, timestamps=self.timestamps, by_arrival=True)
        # Which row leaves a window depends on which came first, so there a stream's own items are recorded in order.
        limited = {f"w_{name}" for name in self.rows}
        operations = [operation for _, operation in numbered(self.plan)]
        return tuple(tuple(one == other and bool(one.writes & limited) for other in operations) for one in operations)

    @property
    def together(self) -> int | None:
        """How many items are let in before the next have to wait for all of them; None if none do."""
        return self.order if isinstance(self.order, int) else 1 if self.order == "serial" else None


class _Machine:
    """One run: windows, the scheduling graph, and what is on its way between operations."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.operations: list[Operation] = [operation for _, operation in numbered(execution.plan)]
        self.graph = SchedulingGraph.of(execution.plan, execution.matrix)
        self.raising = execution.raised and execution.order != "preserving"
        self.windows = {name: Window() for operation in self.operations for name in operation.writes}
        self.windows.update({f"w_{name}": Window(rows) for name, rows in execution.rows.items()})
        self.arrivals = {f"w_{flow.stream}" for flow in execution.plan}
        self.out = self.windows[f"w_{RESULT}"]
        self.queues: dict[Node, list[Change]] = defaultdict(list)
        self.stamps = count()
        self.edges = 0
        self.ran: list[Node] = []
        self.handled: list[int] = []
        self.done: dict[int, int] = {}  # items with the step of their end
        self.states: list[Contents] = []

    def run(self, items: Sequence[Item], choose: Choose) -> Run:
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
        return Run(tuple(self.states), self.edges, waited, tuple(self.ran), tuple(self.handled), written)

    def _admit(self, items: Sequence[Item], step: int) -> int:
        """Let in what has arrived and is not held; if nothing is pending, time goes on to the next arrival."""
        gap, together = self.execution.gap, self.execution.together
        while (number := self.graph.arrived) < len(items):
            if self.graph.chains:
                if number * gap > step or (together and number % together == 0):
                    break
            else:
                step = max(step, number * gap)
            item, waits = items[number], self.graph.waits
            if item.sign not in (1, -1):
                raise PlanError(f"item {number} has the sign {item.sign}: 1 or -1")
            self.graph = self.graph.arrive(item.stream)
            self.edges += self.graph.waits - waits
            self.queues[self.graph.chains[-1][0]] = [Change(frozenset(item.values.items()), item.sign, item=number)]
        return step

    def _ready(self) -> list[Node]:
        """The operations that have something to do and wait for nothing."""
        held = {node for _, node in self.graph.dashed}
        reach = 1 if self.execution.mode == "block" else None
        return [node for chain in self.graph.chains for node in chain[:reach] if self.queues[node] and node not in held]

    def _operate(self, node: Node) -> int:
        """One step: an operation does all that waits for it, or in item mode the first of it; how many that were."""
        operation, waiting = self.operations[node.row], self.queues[node]
        taken = waiting if self.execution.mode == "block" else waiting[:1]
        self.queues[node] = waiting[len(taken) :]
        handle = self._record if operation.kind == "record" else self._read
        found = [output for change in taken for output in handle(operation, change)]
        if operation.window != f"w_{RESULT}":
            self.queues[Node(node.item, node.row + 1)] += found
        return len(taken)

    def _complete(self, item: int, step: int) -> None:
        """Take from the graph what an item is through with, and keep the state if nothing before it is left."""
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

    def _record(self, operation: Operation, change: Change) -> Iterator[Change]:
        """Write a change; what it drives out of the window goes first, each with its timestamp in the same step."""
        window = self.windows[operation.window]
        first = operation.window in self.arrivals
        for row, sign in window.relocate(change.row, change.sign):
            late = self.raising and change.stamp <= window.highest
            stamp = next(self.stamps) if first or late else change.stamp
            yield window.write(row, sign, stamp, change.item)

    def _read(self, operation: Operation, change: Change) -> Iterator[Change]:
        """What a change makes of the rows it meets."""

        def seen(other: Change) -> bool:
            return not self.execution.timestamps or other.stamp < change.stamp

        met = self.windows[operation.window].matching(change, operation.on, seen)
        if operation.kind == "left":
            if sum(met.values()) <= 0:  # counted as `_switched` does, where some are taken away before they came
                yield change
            return
        turn = change.sign if operation.kind == "join" else -self._switched(operation, change)
        for row, number in met.items() if turn else ():
            together = row | change.row if operation.kind == "join" else row
            for _ in range(abs(number)):
                yield change._replace(row=together, sign=turn if number > 0 else -turn)

    def _switched(self, operation: Operation, change: Change) -> int:
        """Of -right: 1 if a change in its own window is the first of its equals to come, -1 if the last to go, else 0.

        Those of the same item count up to the change itself, with timestamps or without.
        """

        def seen(other: Change) -> bool:
            if self.execution.timestamps or other.item == change.item:
                return (other.stamp, other.place) < (change.stamp, change.place)
            return True

        own = self.windows[operation.own or operation.window]
        before = sum(own.matching(change, operation.on, seen).values())
        return (before + change.sign > 0) - (before > 0)


def is_order_preserving(states: States, serial: States) -> bool:
    """Whether every state is that of the serial execution."""
    return list(states) == list(serial)


def is_weakly_order_preserving(states: States, serial: States) -> bool:
    """Whether at least one state is that of the serial execution."""
    return any(state == wanted for state, wanted in zip(states, serial, strict=True))


def agrees_every(k: int, states: States, serial: States) -> bool:
    """Whether after every k items the state is that of the serial execution."""
    return list(states)[k - 1 :: k] == list(serial)[k - 1 :: k]


def is_order_invariant(
    plan: Plan, items: Sequence[Item], *, rows: Mapping[str, int] | None = None, limit: int = 720, seed: int = 0
) -> bool:
    """Whether items give the same final result in every order; of more than `limit` orders so many drawn by seed."""
    serial, chance = Execution(plan, "serial", rows=rows or {}), Random(seed)
    every = math.factorial(len(items)) <= limit
    some = permutations(items) if every else (chance.sample(items, len(items)) for _ in range(limit))
    wanted = serial.run(items).final
    return all(serial.run(order).final == wanted for order in islice(some, limit))
