"""Chart partitioning for latency: forks are broken where what is behind them yields results more slowly.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", section 4, branches by non-increasing slope (printed the other
way round). A path is never broken. A component in which streams meet is not partitioned: it has one output rate, by the
rates of its streams (section 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.charts import latency_partitions
from dsms.plan import Plan
from dsms.policies.by_chart import ByChart, by_piece, has_merge, steep, trees
from dsms.segment import Segment
from dsms.statistics import Statistics


@dataclass
class PartitionForLatency(ByChart):
    name: ClassVar[str] = "partition-latency"

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        grown, segments = trees(plan, statistics), list[Segment]()
        for members in plan.components(streams=False):
            if has_merge(members):
                whole = Segment(tuple(members))
                whole.measure(statistics.of, plan.settings.buffers == "shared")
                segments.append(steep(members, whole.selectivity / whole.mean_cost))
            else:
                segments += by_piece(latency_partitions([grown[members[0].index]]))
        return segments
