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
# Every arrival changes the backlog of one query: what FAS-MCQ ranks by.
HUNDRED = Workload(streams=100, queries=1, operators=3, turns=140_000, load=2.0)
TEN_THOUSAND = Workload(streams=10_000, queries=1, operators=3, turns=140_000, load=2.0)


def shape() -> Iterator[Row]:
    """One run of each; the set-up is not timed."""
    for policy in POLICIES:
        yield _row(policy, f"a turn, 10,000 segments, {policy}", MANY, "10 segments", FEW)
    yield _row("fas-mcq", "a turn, 10,000 queries, fas-mcq", TEN_THOUSAND, "100 queries", HUNDRED)


def _row(policy: str, what: str, larger: Workload, peer: str, smaller: Workload) -> Row:
    few, many = Legs(smaller.plan, policy, LEG), Legs(larger.plan, policy, LEG)
    times = interleaved({"few": few, "many": many}, repetitions=11)
    for workload, legs in ((smaller, few), (larger, many)):
        work = workload.work
        turns = work.admitted if policy == "fas-mcq" else work.turns  # a tuple through all of its query, or one step
        assert legs.finish() == work._replace(turns=turns)
    ratio = times["many"].median / times["few"].median
    return Row(what, times["many"].micros, f"{peer} {times['few'].micros}", ratio, "≤ 3", ratio <= 3)
