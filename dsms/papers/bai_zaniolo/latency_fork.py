"""Figures 5 and 6: whether a fork's slower branch should run together with the rest or after it, for latency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsms.engine.policy import Policy
from dsms.papers import Claim, Experiment, Measurements, Plot, PlotLine, Point, Scale, band_near, band_up_to
from dsms.papers.bai_zaniolo.batch import FixedOrderPolicy, chart_line, drain_batch, partitions, single_stream_plan
from dsms.papers.experiment import lines_over

FIRST, FAST = 2.0, 1.0  # processing times of O1 and O2
SLOW = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0)  # processing times of O3
WHOLE, BROKEN = [["O1", "O2", "O3"]], [["O1", "O2"], ["O3"]]
CUTS: dict[str, str | list[list[str]]] = {
    "whole": WHOLE,
    "broken": BROKEN,
    "slow-first": [["O1", "O3"], ["O2"]],
    "policy": "partition-latency",
}
LABELS = {"whole": "unbroken", "broken": "broken", "policy": "as the partition chooses"}


def points(scale: Scale) -> list[Point]:
    return [
        {"seed": seed, "slow": slow, "cut": cut, "tuples": scale.of(300, 100)}
        for seed in scale.numbers()
        for slow in SLOW
        for cut in CUTS
    ]


def measure(point: Point) -> dict[str, Any]:
    operators = [
        {"name": "O1", "inputs": ["s"], "cost": FIRST},
        {"name": "O2", "inputs": ["O1"], "cost": FAST},
        {"name": "O3", "inputs": ["O1"], "cost": point["slow"]},
    ]
    plan, cut = single_stream_plan(point["tuples"], operators), CUTS[point["cut"]]
    policy: str | Policy = cut if isinstance(cut, str) else FixedOrderPolicy(cut)
    result = drain_batch(plan, policy)
    pieces = len(partitions(plan, cut) if isinstance(cut, str) else cut)
    scaled = result.area / point["tuples"] ** 2
    return {"pieces": pieces, "area": result.area, "scaled": scaled, **result.outputs_left()}


def _cut_by_rule(measured: Measurements) -> float:
    """The share of times of O3 at which the policy cuts as the rule says."""
    cuts = [(slow, measured.value("pieces", slow=slow, cut="policy")) for slow in SLOW]
    return float(np.mean([pieces == (1 if slow < FIRST + FAST else 2) for slow, pieces in cuts]))


def _crossing(measured: Measurements) -> float:
    """The time of O3 above which the broken fork has the smaller area."""
    _, whole = measured.line("area", "slow", cut="whole")
    _, broken = measured.line("area", "slow", cut="broken")
    gain = np.array(whole) - np.array(broken)
    after = int(np.argmax(gain > 0))
    if after == 0 or gain[after] <= 0:
        return float("nan")
    low, high = gain[after - 1], gain[after]
    return float(SLOW[after - 1] - low * (SLOW[after] - SLOW[after - 1]) / (high - low))


def _area_over(cut: str, formula: Callable[[float], float]) -> Callable[[Measurements], float]:
    """The measured area, divided by N², over a formula; the mean over times of O3."""
    return lambda measured: float(
        np.mean([measured.value("scaled", slow=slow, cut=cut) / formula(slow) for slow in SLOW])
    )


def _slow_first(measured: Measurements) -> float:
    """The least area with the slower branch first, over the area with the faster first."""
    return min(
        measured.value("area", slow=slow, cut="slow-first") / measured.value("area", slow=slow, cut="broken")
        for slow in SLOW
    )


def _policy_over_best(measured: Measurements) -> float:
    """The greatest ratio of the policy's area to that of the best cut."""
    return max(
        measured.value("area", slow=slow, cut="policy")
        / min(measured.value("area", slow=slow, cut=cut) for cut in CUTS if cut != "policy")
        for slow in SLOW
    )


def _charts(slow: float) -> Callable[[Measurements], Sequence[PlotLine]]:
    def lines(measured: Measurements) -> Sequence[PlotLine]:
        return [chart_line(LABELS[cut], measured, slow=slow, cut=cut) for cut in ("whole", "broken")]

    return lines


LATENCY_FORK = Experiment(
    name="latency-fork",
    title="A fork for latency, broken or not",
    setup=(
        "O1 feeds O2 and O3, all of selectivity 1, on a batch of 300 tuples (100 in a quick run). The paper's times "
        "are symbols. We chose τ1 = 2, τ2 = 1 and τ3 from 1.5 to 6, among them (2, 1, 2) and (2, 1, 4) for either "
        "outcome. Every cut is run: unbroken (each tuple through O1, O2, O3), broken (all through O1, O2, then all "
        "through O3), the slower branch first, and the cut that `partition-latency` chooses."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot("figure-5", "A fork better left whole: τ = (2, 1, 2)", "time", "outputs not delivered", _charts(2.0)),
        Plot("figure-6", "A fork better broken: τ = (2, 1, 4)", "time", "outputs not delivered", _charts(4.0)),
        Plot("figure-6-areas", "Area under the chart", "τ3", "area / N²", lines_over("scaled", "slow", "cut", LABELS)),
    ),
    claims=(
        Claim(
            name="fork-rule",
            text=(
                "A fork stays whole where τ3 < τ1 + τ2, and is broken otherwise. Ours: the share of times τ3 at which "
                "the partition does so."
            ),
            paper="always",
            ours=_cut_by_rule,
            band=band_near(1, 1e-9),
            form=".0%",
        ),
        Claim(
            name="fork-crossing",
            text="Breaking has the smaller area from τ3 = τ1 + τ2 on. Ours: the τ3 where the measured areas cross.",
            paper="3",
            ours=_crossing,
            band=band_near(3, 0.05),
            form=".4g",
        ),
        Claim(
            name="area-unbroken",
            text="Unbroken, the area for N tuples is N²·(τ1 + τ2 + τ3). Ours: measured area over formula.",
            paper="1",
            ours=_area_over("whole", lambda slow: FIRST + FAST + slow),
            band=band_near(1, 0.02),
            reading="The continuous limit; whole tuples add 1/N and less.",
            form=".4g",
        ),
        Claim(
            name="area-broken",
            text="Broken, the area is ½N²·(τ1 + τ2) + ½N²·τ3. Ours: measured area over formula.",
            paper="1",
            ours=_area_over("broken", lambda slow: (FIRST + FAST + slow) / 2),
            band=band_near(1, 0.02),
            because=(
                "The printed formula omits the rectangle N²·(τ1 + τ2), the wait of O3's outputs for O1 and O2. It "
                "would make breaking always better, against the paper's own rule."
            ),
            others={
                "with the rectangle N²·(τ1 + τ2)": _area_over("broken", lambda slow: (3 * (FIRST + FAST) + slow) / 2)
            },
            form=".4g",
        ),
        Claim(
            name="branch-order",
            text=(
                "Branches run by non-decreasing slope. Ours: the least area with the slower branch first over the area "
                "with the faster first."
            ),
            paper="≤ 1",
            ours=_slow_first,
            band=band_up_to(1.0),
            because=(
                "A misprint: by non-increasing slope, as everywhere else in the paper, the area is smaller throughout."
            ),
            others={"by non-increasing slope": lambda measured: 1 / _slow_first(measured)},
        ),
        Claim(
            name="fork-best",
            text=(
                "The partition has the least latency. Ours: the greatest ratio of its area to the area of the best cut."
            ),
            paper="1",
            ours=_policy_over_best,
            band=band_up_to(1 + 1e-9),
            form=".6g",
        ),
    ),
)
