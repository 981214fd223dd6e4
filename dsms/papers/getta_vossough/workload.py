"""Random items for dataflow expressions, and the expected cost and fan-out of each operation on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from dsms.dataflow import (
    Cost,
    Dataflow,
    DataflowExecution,
    DataflowRun,
    DifferenceTerm,
    Expression,
    JoinTerm,
    Mode,
    Operation,
    Plan,
    StreamItem,
    StreamTerm,
    input_streams,
    number_operations,
    subexpressions,
    translate,
)

# The paper's two examples; in both, δ of s has two orders.
THREE = JoinTerm(JoinTerm(StreamTerm("r", "ab"), StreamTerm("s", "bc"), "b"), StreamTerm("t", "ac"), "ac")
WITHOUT = DifferenceTerm(JoinTerm(StreamTerm("r", "ab"), StreamTerm("s", "bc"), "b"), StreamTerm("t", "cd"), "c")
DIFFERENCE = DifferenceTerm(StreamTerm("r", "x"), StreamTerm("s", "x"), "x")


@dataclass(frozen=True)
class Workload:
    """A query, the sizes of its windows, the number of values of its attributes, and the times of its operations."""

    query: Expression
    rows: Mapping[str, int]  # rows of each stream's window
    values: Mapping[str, int]  # distinct values of each attribute, all equally frequent
    times: Mapping[str, float]  # processing time of an item, by the kind of operation

    def item(self, stream: StreamTerm, random: Random) -> StreamItem:
        """Draw one item of a stream."""
        return StreamItem(
            stream.name, {name: random.randrange(self.values.get(name, 1 << 30)) for name in stream.attributes}
        )

    def full(self, random: Random) -> list[StreamItem]:
        """Draw the items that fill all windows."""
        return [
            self.item(stream, random) for stream in input_streams(self.query) for _ in range(self.rows[stream.name])
        ]

    def items(self, arrivals: Iterable[str], seed: int) -> list[StreamItem]:
        """Draw the items that fill the windows, then one item for each stream name in `arrivals`."""
        random, streams = Random(seed), {stream.name: stream for stream in input_streams(self.query)}
        return [*self.full(random), *(self.item(streams[name], random) for name in arrivals)]

    @property
    def before(self) -> int:
        """The number of items that only fill the windows."""
        return sum(self.rows.values())

    def estimate(self, operation: Operation) -> Cost:
        """The mean time and fan-out of an operation, if all windows are full and values independent."""
        return Cost(self.times[operation.kind], self._outputs(operation))

    def _outputs(self, operation: Operation) -> float:
        equal = 1 / math.prod(self.values[name] for name in operation.on)
        if operation.kind == "record":
            return 2 if operation.window[2:] in self.rows else 1  # a new row evicts an old one from a full window
        if operation.kind == "join":
            return self._held(operation.window) * equal
        if operation.kind == "left":
            return float((1 - equal) ** self._held(operation.window))
        others = self._held(operation.own or operation.window) - 1
        return float((1 - equal) ** others * self._held(operation.window) * equal)

    def _held(self, window: str) -> float:
        """The expected number of rows in a window."""
        name = window[2:]
        if name in self.rows:
            return self.rows[name]
        (stored,) = (part for part in subexpressions(self.query) if isinstance(part, JoinTerm) and part.name == name)
        pairs = self._held(f"w_{stored.left.name}") * self._held(f"w_{stored.right.name}")
        return pairs / math.prod(self.values[on] for on in stored.on)

    def run(self, plan: Plan, items: Sequence[StreamItem], mode: Mode = "block") -> DataflowRun:
        """Run items serially; in item mode the operation nearest to the result runs first."""
        return DataflowExecution(plan, "serial", rows=self.rows, mode=mode).run(items, lambda ready: ready[-1])


def uniform(query: Expression, rows: int, values: int, times: Mapping[str, float]) -> Workload:
    """A workload with windows of equal size, and equally many values for all attributes that streams share."""
    streams = list(input_streams(query))
    names = [name for stream in streams for name in stream.attributes]
    shared = {name: values for name in names if names.count(name) > 1}
    return Workload(query, {stream.name: rows for stream in streams}, shared, times)


def with_flow(query: Expression, flow: Dataflow) -> Plan:
    """The paper's plan of a query, with the dataflow of one stream replaced."""
    return tuple(flow if flow.stream == other.stream else other for other in translate(query))


def work(workload: Workload, plan: Plan, run: DataflowRun) -> list[float]:
    """The time that operations spent on each item."""
    operations = [operation for _, operation in number_operations(plan)]
    spent = [0.0] * len(run.states)
    for node, count in zip(run.ran, run.handled, strict=True):
        spent[node.item] += workload.times[operations[node.row].kind] * count
    return spent


def result_times(workload: Workload, plan: Plan, run: DataflowRun) -> list[list[float]]:
    """The delays of each item's results after its start, from a serial run in item mode."""
    operations = [operation for _, operation in number_operations(plan)]
    spent = [0.0] * len(run.states)
    delays: list[list[float]] = [[] for _ in run.states]
    for node in run.ran:
        operation = operations[node.row]
        spent[node.item] += workload.times[operation.kind]
        if operation.window == "w_out":
            delays[node.item].append(spent[node.item])
    return delays
