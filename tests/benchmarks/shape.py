"""What a turn costs, from the decision to the measures, when there are 10,000 segments instead of 10."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.legs import Legs
from benchmarks.report import Row
from benchmarks.timing import interleaved
from benchmarks.turns import POLICIES
from benchmarks.workload import Workload

# Tuples come twice as fast as they can be worked off: most segments have work, and the heap is full of them.
FEW = Workload(streams=1, queries=10, operators=1, turns=50_000, load=2.0)
MANY = Workload(streams=100, queries=100, operators=1, turns=50_000, load=2.0)
LEG = 4096  # turns: what a measure does only once in so many is in every leg


def shape() -> Iterator[Row]:
    """One run of each; the set-up is not timed."""
    for policy in POLICIES:
        few, many = Legs(FEW.plan, policy, LEG), Legs(MANY.plan, policy, LEG)
        times = interleaved({"few": few, "many": many}, repetitions=11)
        assert few.finish() == FEW.work
        assert many.finish() == MANY.work
        ratio = times["many"].median / times["few"].median
        ours, peer = times["many"].micros, f"10 segments {times['few'].micros}"
        yield Row(f"a turn, 10,000 segments, {policy}", ours, peer, ratio, "≤ 3", ratio <= 3)
