"""Chart partitioning for latency: cuts a fork where the branches yield results more slowly than the stem.

Bai and Zaniolo: "Minimizing Latency and Memory in DSMS", section 4, branches by non-increasing slope (printed the other
way round). A path is never broken. A component in which streams meet is not partitioned: it has one output rate, by the
rates of its streams (section 4.1). A slice may stop a tuple inside a segment; its next turn continues with that tuple.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsms.charts import latency_partitions
from dsms.engine.statistics import Statistics
from dsms.plan.graph import Plan
from dsms.plan.operator_trees import build_trees
from dsms.plan.segment import Segment
from dsms.policies.chart_policy import ChartPolicy, has_merge, segment_with_slope, segments_of_pieces


@dataclass
class PartitionForLatency(ChartPolicy):
    name: ClassVar[str] = "partition-latency"

    def cut(self, plan: Plan, statistics: Statistics) -> list[Segment]:
        grown, segments = build_trees(plan, statistics.of), list[Segment]()
        for members in plan.components(streams=False):
            if has_merge(members):
                whole = Segment(tuple(members))
                whole.measure(statistics.of, plan.settings.buffers == "shared")
                segments.append(segment_with_slope(members, whole.selectivity / whole.mean_cost))
            else:
                segments += segments_of_pieces(latency_partitions([grown[members[0].index]]))
        return segments
