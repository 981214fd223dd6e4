"""Figures 8 and 9: how to cut a fork for memory when both branches read a tuple from one shared buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dsms.engine.policy import Policy
from dsms.papers import Claim, Experiment, Measurements, Plot, PlotLine, Point, Scale, band_from, band_near, band_up_to
from dsms.papers.bai_zaniolo.batch import (
    BAND_MORE,
    FixedOrderPolicy,
    chart_line,
    count_placed_as,
    drain_batch,
    single_stream_plan,
)
from dsms.plan.graph import Plan

STATED = (("O1", "O3", "O4"), ("O2",))  # the paper's partitions
APART = (("O1",), ("O3", "O4"), ("O2",))  # the partitions of independent branches
POLICY = "partition-memory"
CUTS: dict[str, str | Sequence[Sequence[str]]] = {
    "policy": POLICY,
    "split": APART,
    "fork-alone": (("O1", "O3"), ("O4",), ("O2",)),
    "whole": (("O1", "O3", "O4", "O2"),),
    "flattest-first": (("O1", "O3", "O2"), ("O4",)),
}
LABELS = {
    "policy": "{O1, O3, O4}, {O2}",
    "split": "{O1}, {O3, O4}, {O2}",
    "fork-alone": "{O1, O3}, {O4}, {O2}",
    "whole": "{O1, O3, O4, O2}",
    "flattest-first": "{O1, O3, O2}, {O4}",
}


def points(scale: Scale) -> list[Point]:
    return [
        {"seed": seed, "cut": cut, "tuples": tuples}
        for seed in scale.numbers()
        for cut in CUTS
        for tuples in (1, scale.of(300, 60))
    ]


def plan(tuples: int, buffers: str = "shared") -> Plan:
    return single_stream_plan(
        tuples,
        [
            {"name": "O1", "inputs": ["s"], "cost": 1.0, "size": 0.5},
            {"name": "O2", "inputs": ["O1"], "cost": 10.0},
            {"name": "O3", "inputs": ["s"], "cost": 2.0, "size": 0.4},
            {"name": "O4", "inputs": ["O3"], "cost": 1.0},
        ],
        buffers=buffers,
    )


def measure(point: Point) -> dict[str, Any]:
    batch, cut = plan(point["tuples"]), CUTS[point["cut"]]
    policy: str | Policy = cut if isinstance(cut, str) else FixedOrderPolicy(cut)
    result = drain_batch(batch, policy)
    figures: dict[str, Any] = {"area": result.bytes_area, **result.bytes_left()}
    if isinstance(cut, str):
        figures["stated"] = count_placed_as(batch, cut, STATED)
        figures["apart"] = count_placed_as(plan(1, buffers="private"), cut, APART)
    return figures


def _freed(steps: int) -> Callable[[Measurements], float]:
    """The memory of one tuple that the first steps free, where the fork-segment is a partition of its own."""

    def figure(measured: Measurements) -> float:
        held = measured.where(tuples=1).series("left", cut="fork-alone")
        return held[0] - held[steps]

    return figure


def _fork_time(measured: Measurements) -> float:
    """When both operators of the fork-segment have run."""
    return measured.where(tuples=1).series("at", cut="fork-alone")[2]


def _over_partitions(cut: str) -> Callable[[Measurements], float]:
    """The memory of a batch under another cut, over that under the policy's partitions."""

    def figure(measured: Measurements) -> float:
        mine = measured.where(tuples=max(measured.values("tuples")))
        return mine.value("area", cut=cut) / mine.value("area", cut="policy")

    return figure


def _charts(batch: bool, cuts: Sequence[str]) -> Callable[[Measurements], Sequence[PlotLine]]:
    def lines(measured: Measurements) -> Sequence[PlotLine]:
        mine = measured.where(tuples=max(measured.values("tuples")) if batch else 1)
        return [chart_line(LABELS[cut], mine, cut=cut) for cut in cuts]

    return lines


MEMORY_FORK = Experiment(
    name="memory-fork",
    title="A fork for memory",
    setup=(
        "Two operators read one shared buffer: O1 (time 1, output of size ½), which feeds O2 (10), and O3 (2, output "
        "of size 2/5), which feeds O4 (1). Selectivity is 1, input tuples have size 1. The paper gives the shape; we "
        "chose numbers that yield it. A single tuple and a batch of 300 (60 in a quick run) run in the partitions and "
        "in four other cuts."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot(
            "figure-8",
            "One tuple through the fork",
            "time",
            "size in buffers",
            _charts(False, ("policy", "split", "fork-alone")),
        ),
        Plot("figure-9", "A batch through the fork", "time", "size in buffers", _charts(True, tuple(CUTS))),
    ),
    claims=(
        Claim(
            name="memory-partitions",
            text="The fork is cut into {O1, O3, O4} and {O2}. Ours: operators in the stated partition.",
            paper="4 of 4",
            ours=lambda measured: measured.where(tuples=1).value("stated", cut="policy"),
            band=band_near(4, 1e-9),
        ),
        Claim(
            name="first-adds",
            text="The first operator of every branch but the last adds to memory. Ours: the size that the first adds.",
            paper="> 0",
            ours=lambda measured: -_freed(1)(measured),
            band=band_from(1e-9),
        ),
        Claim(
            name="fork-segment",
            text="The fork-segment O1, O3 frees the shared tuple's size less that of its outputs: 1 − ½ − 2/5.",
            paper="0.1",
            ours=_freed(2),
            band=band_near(0.1, 1e-9),
        ),
        Claim(
            name="fork-segment-time",
            text="The fork-segment takes the sum of its operators' times.",
            paper="3",
            ours=_fork_time,
            band=band_near(3, 1e-9),
        ),
        Claim(
            name="never-split",
            text=(
                "A fork on a shared buffer is not split. Ours: the memory of a batch with O1 split off, over that of "
                "the partitions."
            ),
            paper="> 1",
            ours=_over_partitions("split"),
            band=BAND_MORE,
        ),
        Claim(
            name="worth-merging",
            text="Merging O4 into the fork-segment pays. Ours: the memory without it, over that of the partitions.",
            paper="> 1",
            ours=_over_partitions("fork-alone"),
            band=BAND_MORE,
            reading="Our own check, which follows from the stated partitions.",
        ),
        Claim(
            name="rest-behind",
            text="Merging O2 does not pay. Ours: the memory with every operator in one partition, over that of the "
            "partitions.",
            paper="> 1",
            ours=_over_partitions("whole"),
            band=BAND_MORE,
            reading="Our own check, which follows from the stated partitions.",
        ),
        Claim(
            name="branch-order",
            text="Operators behind the fork follow by non-decreasing rate. Ours: the memory in that order, over that "
            "of the partitions.",
            paper="≤ 1",
            ours=_over_partitions("flattest-first"),
            band=band_up_to(1.0),
            because="A misprint, which the paper's own example contradicts: by non-increasing rate memory is smaller.",
            others={"by non-increasing rate": lambda measured: 1 / _over_partitions("flattest-first")(measured)},
        ),
        Claim(
            name="private-buffers",
            text="With a buffer for each branch, branches are independent paths. Ours: operators that the policy cuts "
            "so.",
            paper="4 of 4",
            ours=lambda measured: measured.where(tuples=1).value("apart", cut="policy"),
            band=band_near(4, 1e-9),
        ),
    ),
)
