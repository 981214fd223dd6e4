"""What will become of queued tuples, exactly: for policies that are yardsticks and know what no scheduler can know."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dsms.charts import TupleChart
from dsms.errors import PolicyError
from dsms.ledger import Queue
from dsms.runners.tuples import Line, Tuple, TupleRunner
from dsms.segment import Segment

if TYPE_CHECKING:
    from dsms.engine import Engine


class Prospect(NamedTuple):
    """What one tuple will take and give when a segment runs on it."""

    cost: float
    outputs: int
    freed: float  # bytes


def require_foresight(policy: str, engine: Engine) -> None:
    """Refuse a run in which fates are not known beforehand."""
    if not isinstance(engine.runner, TupleRunner) or engine.clock.slice is not None:
        raise PolicyError(
            f"policy {policy!r} looks at the costs and fates of queued tuples: a yardstick, which needs individual "
            'abstract tuples (tuples = "individual"), in this process, in virtual time'
        )


def prospect(queue: Queue, key: int, segment: Segment) -> Prospect:
    """What becomes of a tuple in this queue inside the segment."""
    inside = {own.index for own in segment.queues}
    readers = len(queue.buffer.readers) if queue.buffer.copies == 1 else 1  # of a shared tuple each frees its part
    cost, outputs, freed = 0.0, 0, _size(queue.goods, key) / readers
    ahead = [(queue, key)]
    started: set[int] = set()  # start-up is paid once a turn
    while ahead:
        queue, key = ahead.pop()
        line: Line = queue.goods
        if queue.station.index not in started:
            started.add(queue.station.index)
            cost += queue.station.operator.startup
        children = line.children(key)
        cost += line.cost * line.costs.get(key, 1.0)
        if queue.station.sink:
            outputs += len(children)
        outside = [reader for reader in queue.outlet.readers if reader.index not in inside]
        if outside:
            copies = 1 if queue.outlet.copies == 1 else len(outside)
            freed -= copies * len(children) * (line.size_out or _size(line, key))
        ahead += [(r, child) for r in queue.outlet.readers if r.index in inside for child in children]
    return Prospect(cost, outputs, freed)


def head(segment: Segment) -> Prospect:
    """What becomes of the tuple that a turn would take."""
    queue = segment.start()
    return prospect(queue, queue.goods.tuples[0][1], segment)


def waiting(segment: Segment) -> Iterator[tuple[Queue, Tuple]]:
    """The tuples of a segment in the order in which it would take them."""
    entries = [(queue, entry) for queue in segment.queues for entry in queue.goods.tuples]
    yield from sorted(entries, key=lambda place: (place[1][0], -place[0].station.index, place[0].port))


def _size(line: Line, key: int) -> float:
    return line.sizes.get(key, line.size)


class TupleCharts:
    """The chart of each segment's waiting tuples, kept while they come and go."""

    def __init__(self, gain: Callable[[Prospect], float]) -> None:
        self._gain = gain
        self._charts: dict[int, tuple[TupleChart, deque[int]]] = {}  # by serial; with the keys of its tuples

    def slope(self, segment: Segment) -> float:
        """That of the steepest line from the first tuple to the end of any."""
        chart, keys = self._charts.setdefault(segment.serial, (TupleChart(), deque()))
        queue = segment.start()
        if any(other.goods.tuples for other in segment.queues if other is not queue):
            # Left in the middle by another policy, or several inputs: worked off soon, so drawn anew each time.
            del self._charts[segment.serial]
            chart = TupleChart()
            for place, entry in waiting(segment):
                self._push(chart, place, entry[1], segment)
            return chart.slope
        tuples = queue.goods.tuples
        while keys and keys[0] != tuples[0][1]:
            keys.popleft()
            chart.pop()
        for position in range(len(keys), len(tuples)):
            key = tuples[position][1]
            keys.append(key)
            self._push(chart, queue, key, segment)
        return chart.slope

    def _push(self, chart: TupleChart, queue: Queue, key: int, segment: Segment) -> None:
        seen = prospect(queue, key, segment)
        chart.push(seen.cost, self._gain(seen))
