"""Streams of items with values drawn at random, and what the paper's averages are for operations on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from dsms.dataflow import (
    Cost,
    Dataflow,
    Difference,
    Execution,
    Expression,
    Item,
    Join,
    Mode,
    Operation,
    Plan,
    Run,
    Stream,
    inputs,
    numbered,
    parts,
    translate,
)

# The paper's two examples; in both, δ of s has two orders.
THREE = Join(Join(Stream("r", "ab"), Stream("s", "bc"), "b"), Stream("t", "ac"), "ac")
WITHOUT = Difference(Join(Stream("r", "ab"), Stream("s", "bc"), "b"), Stream("t", "cd"), "c")
DIFFERENCE = Difference(Stream("r", "x"), Stream("s", "x"), "x")


@dataclass(frozen=True)
class Workload:
    """Windows that hold so many rows; attributes that have so many values, all as frequent; operations that take so
    long for an item, by their kind."""

    query: Expression
    rows: Mapping[str, int]
    values: Mapping[str, int]
    times: Mapping[str, float]

    def item(self, stream: Stream, chance: Random) -> Item:
        """One item of a stream."""
        return Item(stream.name, {name: chance.randrange(self.values.get(name, 1 << 30)) for name in stream.attributes})

    def full(self, chance: Random) -> list[Item]:
        """As many items as fill all windows."""
        return [self.item(stream, chance) for stream in inputs(self.query) for _ in range(self.rows[stream.name])]

    def items(self, arrivals: Iterable[str], seed: int) -> list[Item]:
        """What fills the windows, then one item for each arrival of a stream."""
        chance, streams = Random(seed), {stream.name: stream for stream in inputs(self.query)}
        return [*self.full(chance), *(self.item(streams[name], chance) for name in arrivals)]

    @property
    def before(self) -> int:
        """How many items only fill the windows."""
        return sum(self.rows.values())

    def estimate(self, operation: Operation) -> Cost:
        """What an operation takes and puts out on the average, if all windows are full and values independent."""
        return Cost(self.times[operation.kind], self._outputs(operation))

    def _outputs(self, operation: Operation) -> float:
        equal = 1 / math.prod(self.values[name] for name in operation.on)
        if operation.kind == "record":
            return 2 if operation.window[2:] in self.rows else 1  # what is new drives what is old out of a full window
        if operation.kind == "join":
            return self._held(operation.window) * equal
        if operation.kind == "left":
            return float((1 - equal) ** self._held(operation.window))
        others = self._held(operation.own or operation.window) - 1
        return float((1 - equal) ** others * self._held(operation.window) * equal)

    def _held(self, window: str) -> float:
        """How many rows there are in a window."""
        name = window[2:]
        if name in self.rows:
            return self.rows[name]
        (stored,) = (part for part in parts(self.query) if isinstance(part, Join) and part.name == name)
        pairs = self._held(f"w_{stored.left.name}") * self._held(f"w_{stored.right.name}")
        return pairs / math.prod(self.values[on] for on in stored.on)

    def run(self, plan: Plan, items: Sequence[Item], mode: Mode = "block") -> Run:
        """One item after the other; in item mode whatever can go on towards the result does so first."""
        return Execution(plan, "serial", rows=self.rows, mode=mode).run(items, lambda ready: ready[-1])


def uniform(query: Expression, rows: int, values: int, times: Mapping[str, float]) -> Workload:
    """The same for all windows and all attributes that streams share."""
    streams = list(inputs(query))
    names = [name for stream in streams for name in stream.attributes]
    shared = {name: values for name in names if names.count(name) > 1}
    return Workload(query, {stream.name: rows for stream in streams}, shared, times)


def with_flow(query: Expression, flow: Dataflow) -> Plan:
    """The paper's plan of a query, but for one stream."""
    return tuple(flow if flow.stream == other.stream else other for other in translate(query))


def work(workload: Workload, plan: Plan, run: Run) -> list[float]:
    """The time that was spent on each item: all that operations took in hand for it."""
    operations = [operation for _, operation in numbered(plan)]
    spent = [0.0] * len(run.states)
    for node, count in zip(run.ran, run.handled, strict=True):
        spent[node.item] += workload.times[operations[node.row].kind] * count
    return spent


def result_times(workload: Workload, plan: Plan, run: Run) -> list[list[float]]:
    """For each item, after how long each of its results was out; of a run one item after the other, in item mode."""
    operations = [operation for _, operation in numbered(plan)]
    spent = [0.0] * len(run.states)
    found: list[list[float]] = [[] for _ in run.states]
    for node in run.ran:
        operation = operations[node.row]
        spent[node.item] += workload.times[operation.kind]
        if operation.window == "w_out":
            found[node.item].append(spent[node.item])
    return found
