"""A fork for memory: a tuple that two operators read is freed by the second of them only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dsms.papers import Claim, Experiment, Line, Measured, Plot, Point, Scale, at_least, at_most, near
from dsms.papers.bai_zaniolo.batch import MORE, InOrder, cut_as, drawn, on_one_stream, worked_off
from dsms.plan import Plan
from dsms.policies.base import Policy

STATED = (("O1", "O3", "O4"), ("O2",))
APART = (("O1",), ("O3", "O4"), ("O2",))  # every branch as if it were alone
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
    return on_one_stream(
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
    policy: str | Policy = cut if isinstance(cut, str) else InOrder(cut)
    gone = worked_off(batch, policy)
    found: dict[str, Any] = {"area": gone.bytes_area, **gone.bytes_left()}
    if isinstance(cut, str):
        found["stated"] = cut_as(batch, cut, STATED)
        found["apart"] = cut_as(plan(1, buffers="private"), cut, APART)
    return found


def _freed(steps: int) -> Callable[[Measured], float]:
    """What of one tuple's memory is freed by the first so many steps, where the fork-segment is run by itself."""

    def figure(measured: Measured) -> float:
        held = measured.where(tuples=1).series("left", cut="fork-alone")
        return held[0] - held[steps]

    return figure


def _fork_time(measured: Measured) -> float:
    return measured.where(tuples=1).series("at", cut="fork-alone")[2]


def _over_ours(cut: str) -> Callable[[Measured], float]:
    """The memory of a cut over that of the partitions, for the batch."""

    def figure(measured: Measured) -> float:
        mine = measured.where(tuples=max(measured.values("tuples")))
        return mine.value("area", cut=cut) / mine.value("area", cut="policy")

    return figure


def _charts(batch: bool, cuts: Sequence[str]) -> Callable[[Measured], Sequence[Line]]:
    def lines(measured: Measured) -> Sequence[Line]:
        mine = measured.where(tuples=max(measured.values("tuples")) if batch else 1)
        return [drawn(LABELS[cut], mine, cut=cut) for cut in cuts]

    return lines


MEMORY_FORK = Experiment(
    name="memory-fork",
    title="A fork for memory",
    setup=(
        "Two operators read one shared buffer: O1 (time 1, output of size ½) with O2 (10) behind it, O3 (2, output "
        "of size 2/5) with O4 (1) behind it; selectivity 1, input tuples of size 1. The paper gives the shape, the "
        "numbers are chosen so that it comes out. A single tuple and a batch of 300 (60 in a quick run) are run in "
        "the partitions and in four other cuts."
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
            text="The fork is cut into {O1, O3, O4} and {O2}: operators that are where they are to be.",
            paper="4 of 4",
            ours=lambda measured: measured.where(tuples=1).value("stated", cut="policy"),
            band=near(4, 1e-9),
        ),
        Claim(
            name="first-adds",
            text="The first operator of every branch but the last adds to memory: what the one that runs first adds.",
            paper="> 0",
            ours=lambda measured: -_freed(1)(measured),
            band=at_least(1e-9),
        ),
        Claim(
            name="fork-segment",
            text="The fork-segment O1, O3 frees what the shared tuple has more than its outputs: 1 − ½ − 2/5.",
            paper="0.1",
            ours=_freed(2),
            band=near(0.1, 1e-9),
        ),
        Claim(
            name="fork-segment-time",
            text="The fork-segment takes the time of both its operators.",
            paper="3",
            ours=_fork_time,
            band=near(3, 1e-9),
        ),
        Claim(
            name="never-split",
            text=(
                "A fork on a shared buffer is not split: the memory of a batch with O1 taken first, over the "
                "partitions'."
            ),
            paper="> 1",
            ours=_over_ours("split"),
            band=MORE,
        ),
        Claim(
            name="worth-merging",
            text="O4 is worth merging into the fork-segment: the memory with it left behind, over the partitions'.",
            paper="> 1",
            ours=_over_ours("fork-alone"),
            band=MORE,
            reading="Our own check: follows from the partitions stated.",
        ),
        Claim(
            name="rest-behind",
            text="O2 is not worth merging: the memory with every tuple through all of the fork, over the partitions'.",
            paper="> 1",
            ours=_over_ours("whole"),
            band=MORE,
            reading="Our own check: follows from the partitions stated.",
        ),
        Claim(
            name="branch-order",
            text="What is behind the fork follows by non-decreasing rate: the memory so, over the partitions'.",
            paper="≤ 1",
            ours=_over_ours("flattest-first"),
            band=at_most(1.0),
            because="A misprint, which the paper's own example contradicts: by non-increasing rate memory is smaller.",
            others={"by non-increasing rate": lambda measured: 1 / _over_ours("flattest-first")(measured)},
        ),
        Claim(
            name="private-buffers",
            text="With a buffer for each branch, branches are independent paths: operators so cut by the policy.",
            paper="4 of 4",
            ours=lambda measured: measured.where(tuples=1).value("apart", cut="policy"),
            band=near(4, 1e-9),
        ),
    ),
)
