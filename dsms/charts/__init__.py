"""Progress charts of the scheduling papers: pure functions of operators' costs, selectivities and sizes.

`envelope` draws a path's progress chart, `partition` cuts forks into pieces, `tuple_segments` cuts a queue into runs,
and `fluid` computes the least memory that any scheduler needs. All take floats, or fractions for exact results.
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
from dsms.charts.fluid import FluidModel
from dsms.charts.partition import (
    ChartPiece,
    Forks,
    OperatorTree,
    indices,
    latency_partitions,
    memory_partitions,
    partition,
    prepend,
    weighted_indices,
)
from dsms.charts.tuple_segments import TupleChart, TupleRun, tuple_segments

__all__ = [
    "ChartPiece",
    "FluidModel",
    "Forks",
    "OperatorTree",
    "Point",
    "TupleChart",
    "TupleRun",
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
