"""Times a turn, from the decision to the measures, with 10,000 segments and with 10."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.report import BenchmarkRow
from benchmarks.simulation.legs import RunInLegs
from benchmarks.simulation.turns import POLICIES
from benchmarks.simulation.workload import BenchmarkWorkload
from benchmarks.timing import interleave

LEG_TURNS = 4096  # each leg includes what a measure does only once in some thousand turns
REPETITIONS = 11


def shape(legs: int = REPETITIONS, side: int = 100) -> Iterator[BenchmarkRow]:
    """Time legs of one run of each size; the set-up is not timed. The larger plans have `side` squared queries."""
    # Tuples come twice as fast as the CPU can process them: most segments have work, and the heap is full of them.
    turns = 50_000 * legs // REPETITIONS
    few = BenchmarkWorkload(streams=1, queries=10, operators=1, turns=turns, load=2.0)
    many = BenchmarkWorkload(streams=side, queries=side, operators=1, turns=turns, load=2.0)
    for policy in POLICIES:
        yield _row(policy, f"a turn, {side**2:,} segments, {policy}", many, "10 segments", few, legs)
    # Every arrival changes the backlog of one query, by which FAS-MCQ ranks.
    turns = 140_000 * legs // REPETITIONS
    hundred = BenchmarkWorkload(streams=100, queries=1, operators=3, turns=turns, load=2.0)
    larger = BenchmarkWorkload(streams=side**2, queries=1, operators=3, turns=turns, load=2.0)
    yield _row("fas-mcq", f"a turn, {side**2:,} queries, fas-mcq", larger, "100 queries", hundred, legs)


def _row(
    policy: str, what: str, larger: BenchmarkWorkload, peer: str, smaller: BenchmarkWorkload, legs: int
) -> BenchmarkRow:
    few, many = RunInLegs(smaller.plan, policy, LEG_TURNS), RunInLegs(larger.plan, policy, LEG_TURNS)
    times = interleave({"few": few, "many": many}, repetitions=legs)
    for workload, run in ((smaller, few), (larger, many)):
        work = workload.work
        turns = work.admitted if policy == "fas-mcq" else work.turns  # a tuple through all of its query, or one step
        assert run.finish() == work._replace(turns=turns)
    ratio = times["many"].median / times["few"].median
    return BenchmarkRow(what, times["many"].micros, f"{peer} {times['few'].micros}", ratio, "≤ 3", ratio <= 3)
