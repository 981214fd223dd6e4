"""T of a dataflow expression: what the costs of its operations say, against the time an item is seen to take.

Getta, Vossough: T is the sum over the operations of the items that reach one times what it takes for each. The costs
are measured on some items, T on others that come later, for both orders of each stream of a join of three.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from benchmarks.report import BenchmarkRow

from dsms.algebra import Window
from dsms.data.batch import Batch
from dsms.data.schema import Schema
from dsms.dataflow import (
    Cost,
    Dataflow,
    JoinTerm,
    Operation,
    StreamTerm,
    dataflow_time,
    enumerate_orders,
    input_streams,
    translate,
)
from dsms.operators.joins import JoinInput, MultiJoin

ITEMS, BLOCKS = 10_000, 12  # of a block; blocks that costs, and then T, are measured by
BELOW = {"a": 2_000, "b": 20_000, "c": 5_000}  # so that orders differ by how many items they make on the way
LONG = Window("range", 10**12)
R, S, T = StreamTerm("r", "ab"), StreamTerm("s", "bc"), StreamTerm("t", "ac")
PORTS = {"r": 0, "s": 1, "t": 2}
THREE = JoinTerm(JoinTerm(R, S, "b"), T, "ac")


class PredictedOrder(NamedTuple):
    """An order of a stream's operations."""

    flow: Dataflow
    predicted: float  # seconds an item
    measured: float
    results: int

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


def predicted() -> Iterator[BenchmarkRow]:
    found = [measure(flow) for part in input_streams(THREE) for flow in enumerate_orders(THREE, part.name)]
    for one in found:
        assert one.results == next(other.results for other in found if other.flow.stream == one.flow.stream) > 0
        what = str(one.flow).replace("->(w_out)", "").rstrip(", ")
        ours, seen = f"T {one.predicted * 1e6:.2f} µs", f"measured {one.measured * 1e6:.2f} µs"
        yield BenchmarkRow(what, ours, seen, one.ratio, "0.5 – 2", 0.5 <= one.ratio <= 2)
    rank = ranked_alike([one.predicted for one in found], [one.measured for one in found])
    yield BenchmarkRow("these orders by T and by time: rank correlation", "", "", rank, "≥ 0.8", rank >= 0.8)


def ranked_alike(one: list[float], other: list[float]) -> float:
    """Spearman's rank correlation."""
    ranks = [np.argsort(np.argsort(values)) for values in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def measure(flow: Dataflow) -> PredictedOrder:
    """T of an order as predicted by costs measured on earlier items, and as it turns out."""
    readings: list[float] = []

    def meter() -> float | None:
        readings.append(time.process_time())
        return readings[-1]

    join = _filled(flow)
    join.meter = meter
    spent, reached = np.zeros(len(flow.operations)), np.zeros(len(flow.operations))
    for block in range(1, BLOCKS + 1):
        readings.clear()
        items = _items(flow.stream, block)
        begun = time.process_time()
        results = len(join.process(items, PORTS[flow.stream]))
        marks = [begun, readings[0], *readings[1::2], time.process_time()]
        if block > 1:  # in the first, indexes are made
            spent += [stop - start for start, stop in pairwise(marks)]
            reached += _reached(flow, block, results)
    estimate = _costs(flow, spent, reached)
    join, rest = _filled(flow), [_items(flow.stream, block) for block in range(BLOCKS + 1, 2 * BLOCKS + 1)]
    join.process(rest.pop(0), PORTS[flow.stream])
    begun = time.process_time()
    made = sum(len(join.process(items, PORTS[flow.stream])) for items in rest)
    measured = (time.process_time() - begun) / len(rest) / ITEMS
    return PredictedOrder(flow, dataflow_time(flow, estimate.__getitem__), measured, made)


def _costs(flow: Dataflow, spent: np.ndarray, reached: np.ndarray) -> Mapping[Operation, Cost]:
    """Per operation: seconds an item, and items put out for one."""
    after = [*reached[1:], reached[-1]]
    return {
        operation: Cost(float(seconds / max(items, 1)), float(made / max(items, 1)))
        for operation, seconds, items, made in zip(flow.operations, spent, reached, after, strict=True)
    }


def _reached(flow: Dataflow, block: int, results: int) -> list[int]:
    """How many items get to each operation: recording, the first join, the second, putting out."""
    first = flow.operations[1]
    (on,) = first.on
    there = np.bincount(_columns(first.window.removeprefix("w_"), 0)[on], minlength=BELOW[on])
    met = int(there[_columns(flow.stream, block)[on]].sum())
    return [ITEMS, ITEMS, met, results]


def _filled(flow: Dataflow) -> MultiJoin:
    """A join whose other windows are full and change no more, that goes by an order."""
    parts = {part.name: part for part in input_streams(THREE)}
    made = tuple(
        JoinInput(name, Schema.of(dict.fromkeys(part.attributes, "int64")), LONG, {a: a for a in part.attributes})
        for name, part in parts.items()
    )
    join = MultiJoin(inputs=made, expression=THREE, columns=("r.a", "s.b", "t.c"), emit="insertions", keep=())
    join.migrate(tuple(flow if other.stream == flow.stream else other for other in translate(THREE)))
    for name in parts:
        if name != flow.stream:
            join.process(Batch.of(_columns(name, 0), watermark=1, ended=True), PORTS[name])
    return join


def _items(stream: str, block: int) -> Batch:
    ts = np.arange(block * ITEMS, (block + 1) * ITEMS)
    return Batch.of(_columns(stream, block), ts=ts, watermark=int(ts[-1]) + 1)


def _columns(stream: str, block: int) -> dict[str, np.ndarray]:
    """The rows of a stream in a block; block 0 is what is in its window before, twice as many."""
    draw = np.random.default_rng([ord(stream), block])
    (part,) = (part for part in input_streams(THREE) if part.name == stream)
    return {name: draw.integers(BELOW[name], size=ITEMS if block else 2 * ITEMS) for name in part.attributes}
