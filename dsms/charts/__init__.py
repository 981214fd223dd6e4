"""What the papers draw to decide who runs first: pure functions of costs, selectivities and sizes, no engine.

`envelope` has the charts of a path and of a batch, `partition` cuts forks into pieces, `tuples` cuts a queue into runs,
`fluid` has the least memory that these leave any scheduler.
Everything takes floats, or fractions where a result is to be exact.
"""

from dsms.charts.envelope import (
    Point,
    area,
    chains,
    deltas,
    lower_envelope,
    memory_chart,
    output_chart,
    progress_chart,
    slopes,
)
from dsms.charts.fluid import Fluid
from dsms.charts.partition import (
    Forks,
    Piece,
    Tree,
    indices,
    latency_partitions,
    memory_partitions,
    partition,
    prepend,
    weighted_indices,
)
from dsms.charts.tuples import Run, TupleChart, tuple_segments

__all__ = [
    "Fluid",
    "Forks",
    "Piece",
    "Point",
    "Run",
    "Tree",
    "TupleChart",
    "area",
    "chains",
    "deltas",
    "indices",
    "latency_partitions",
    "lower_envelope",
    "memory_chart",
    "memory_partitions",
    "output_chart",
    "partition",
    "prepend",
    "progress_chart",
    "slopes",
    "tuple_segments",
    "weighted_indices",
]
