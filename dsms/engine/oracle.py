"""Oracle: reads the exact future cost and outputs of queued tuples, for clairvoyant policies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dsms.charts import TupleChart
from dsms.engine.ledger import Queue
from dsms.engine.runners.tuples import Tuple, TupleQueue, TupleRunner
from dsms.errors import PolicyError
from dsms.plan.segment import Segment

if TYPE_CHECKING:
    from dsms.engine.engine import Engine


class TupleForecast(NamedTuple):
    """What one tuple costs and yields when a segment runs on it."""

    cost: float
    outputs: int
    freed: float  # bytes


def require_oracle(policy: str, engine: Engine) -> None:
    """Raise PolicyError if outcomes are not drawn beforehand in this run."""
    if not isinstance(engine.runner, TupleRunner) or engine.clock.slice is not None:
        raise PolicyError(
            f"policy {policy!r} is an oracle that reads the costs and outcomes of queued tuples: it needs individual "
            'abstract tuples (tuples = "individual"), in this process, in virtual time'
        )


def forecast_tuple(queue: Queue, key: int, segment: Segment) -> TupleForecast:
    """Return what a tuple in this queue costs, yields and frees inside the segment."""
    inside = {own.index for own in segment.queues}
    readers = (
        len(queue.buffer.readers) if queue.buffer.copies == 1 else 1
    )  # each reader of a shared tuple frees its part
    cost, outputs, freed = 0.0, 0, _size(queue.payload, key) / readers
    pending = [(queue, key)]
    started: set[int] = set()  # a turn pays each start-up cost once
    while pending:
        queue, key = pending.pop()
        tuples: TupleQueue = queue.payload
        if queue.station.index not in started:
            started.add(queue.station.index)
            cost += queue.station.operator.startup
        children = tuples.children(key)
        cost += tuples.cost * tuples.costs.get(key, 1.0)
        if queue.station.sink:
            outputs += len(children)
        outside = [reader for reader in queue.outlet.readers if reader.index not in inside]
        if outside:
            copies = 1 if queue.outlet.copies == 1 else len(outside)
            freed -= copies * len(children) * (tuples.size_out or _size(tuples, key))
        pending += [(r, child) for r in queue.outlet.readers if r.index in inside for child in children]
    return TupleForecast(cost, outputs, freed)


def forecast_head(segment: Segment) -> TupleForecast:
    """Return the forecast of the tuple that a turn would take first."""
    queue = segment.start()
    return forecast_tuple(queue, queue.payload.tuples[0][1], segment)


def iterate_waiting(segment: Segment) -> Iterator[tuple[Queue, Tuple]]:
    """Yield a segment's tuples in the order in which it would take them."""
    entries = [(queue, entry) for queue in segment.queues for entry in queue.payload.tuples]
    yield from sorted(entries, key=lambda place: (place[1][0], -place[0].station.index, place[0].port))


def _size(tuples: TupleQueue, key: int) -> float:
    return tuples.sizes.get(key, tuples.size)


class TupleCharts:
    """Keeps a progress chart of each segment's queued tuples, updated as they arrive and leave."""

    def __init__(self, gain: Callable[[TupleForecast], float]) -> None:
        self._gain = gain
        self._charts: dict[int, tuple[TupleChart, deque[int]]] = {}  # by serial: the chart and the keys of its tuples

    def slope(self, segment: Segment) -> float:
        """Return the steepest slope from the first tuple to the end of any later one."""
        chart, keys = self._charts.setdefault(segment.serial, (TupleChart(), deque()))
        queue = segment.start()
        if any(other.payload.tuples for other in segment.queues if other is not queue):
            # Tuples left inside by another policy, or several inputs: rare, so drawn from scratch.
            del self._charts[segment.serial]
            chart = TupleChart()
            for place, entry in iterate_waiting(segment):
                self._push(chart, place, entry[1], segment)
            return chart.slope
        tuples = queue.payload.tuples
        while keys and keys[0] != tuples[0][1]:
            keys.popleft()
            chart.pop()
        for position in range(len(keys), len(tuples)):
            key = tuples[position][1]
            keys.append(key)
            self._push(chart, queue, key, segment)
        return chart.slope

    def _push(self, chart: TupleChart, queue: Queue, key: int, segment: Segment) -> None:
        seen = forecast_tuple(queue, key, segment)
        chart.push(seen.cost, self._gain(seen))
