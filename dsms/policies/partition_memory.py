"""Chart partitioning for memory: Chain, extended to forks.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", section 4: a tuple that several operators read from one buffer
is freed by the last of them, so that the first operators of a fork are one fork-segment; what is behind them follows by
non-increasing rate (printed the other way round). With a copy for each reader every branch is a path of Chain, and so
is every way through a component in which streams meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.charts import memory_partitions
from dsms.engine.statistics import Statistics
from dsms.plan.graph import Plan, Station
from dsms.plan.operator_trees import build_trees
from dsms.plan.segment import Segment
from dsms.policies.chart_policy import (
    ChartPolicy,
    has_merge,
    path_segments,
    require_few_paths,
    segments_of_pieces,
)


@dataclass
class PartitionForMemory(ChartPolicy):
    name: ClassVar[str] = "partition-memory"

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        grown, segments = build_trees(plan, statistics.of), list[Segment]()
        shared = plan.settings.buffers == "shared"
        require_few_paths(self.name, plan)
        paths: dict[int, list[tuple[Station, ...]]] = {}  # by first station
        for path in plan.paths():
            paths.setdefault(path[0].index, []).append(path)
        for members in plan.components(streams=True):
            if has_merge(members):
                ways = [path for station in members for path in paths.get(station.index, ())]
                segments += path_segments(ways, plan, statistics)
                continue
            (stream,) = {id(s.inputs[0]): s.inputs[0] for s in members if s.depth == 1}.values()
            readers = [grown[station.index] for station in stream.consumers]
            segments += segments_of_pieces(memory_partitions(readers, stream.size, shared))
        return segments
