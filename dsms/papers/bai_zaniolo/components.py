"""Areas under output-completion charts: one component, two components in either order, a path broken or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dsms.engine.policy import Policy
from dsms.papers import Claim, Experiment, Measurements, Plot, PlotLine, Point, Scale, band_near
from dsms.papers.bai_zaniolo.batch import (
    BAND_MORE,
    DrainResult,
    FixedOrderPolicy,
    arrive_at_zero,
    chart_line,
    drain_batch,
    single_stream_plan,
)
from dsms.query.plan_file import plan_from

SIZE_BYTES = 10.0  # of a tuple


class BatchComponent(NamedTuple):
    """One operator and the batch that waits before it."""

    tau: float  # processing time of a tuple
    tuples: int
    sigma: float  # selectivity


PAIRS = (  # chosen so that A or B is steeper, by its time or by its selectivity
    (BatchComponent(1.0, 200, 1.0), BatchComponent(3.0, 120, 1.0)),
    (BatchComponent(4.0, 100, 1.0), BatchComponent(1.0, 300, 1.0)),
    (BatchComponent(1.0, 200, 0.25), BatchComponent(2.0, 200, 1.0)),
    (BatchComponent(2.0, 200, 1.0), BatchComponent(1.0, 200, 0.2)),
    (BatchComponent(1.0, 160, 0.5), BatchComponent(3.0, 120, 0.5)),
)
PATHS = ((1.0, 1.0), (0.25, 5.0), (5.0, 0.25))  # the processing times of two operators in a row
ORDERS = {"AB": "A first", "BA": "B first", "component": "as Component chooses"}


def points(scale: Scale) -> list[Point]:
    sweep: list[Point] = []
    for seed in scale.numbers():
        sweep += [{"seed": seed, "pair": pair, "order": o} for pair in range(len(PAIRS)) for o in ("A", "B", *ORDERS)]
        sweep += [{"seed": seed, "path": path, "broken": cut} for path in range(len(PATHS)) for cut in (False, True)]
    return sweep


def measure(point: Point) -> dict[str, Any]:
    if "path" in point:
        return {"area": _drain_path(PATHS[point["path"]], point["broken"]).area}
    result = _drain_pair(dict(zip("AB", PAIRS[point["pair"]], strict=True)), point["order"])
    return {"area": result.area, "bytes": result.bytes_area, **result.outputs_left()}


def _drain_pair(parts: dict[str, BatchComponent], order: str) -> DrainResult:
    """Run A, B or both, in the order given or as the policy Component chooses."""
    included = {name: part for name, part in parts.items() if name in order or order == "component"}
    plan = plan_from({
        "streams": {n: {"size": SIZE_BYTES, "arrivals": arrive_at_zero(part.tuples)} for n, part in included.items()},
        "queries": {f"q{n}": {"from": n, "operators": [{"name": f"o{n}", "cost": p.tau, "selectivity": p.sigma}]}
                    for n, p in included.items()},
        "run": {"selectivity": "spread"},
    })  # fmt: skip
    policy: str | Policy = order if order == "component" else FixedOrderPolicy([[f"o{name}"] for name in order])
    return drain_batch(plan, policy)


def _drain_path(taus: tuple[float, float], broken: bool) -> DrainResult:
    """Run two operators in a row, tuple by tuple or, broken, operator by operator."""
    operators = [{"name": "O1", "inputs": ["s"], "cost": taus[0]}, {"name": "O2", "inputs": ["O1"], "cost": taus[1]}]
    return drain_batch(
        single_stream_plan(100, operators), FixedOrderPolicy([["O1"], ["O2"]] if broken else [["O1", "O2"]])
    )


def _farthest_from_1(ratios: Sequence[float]) -> float:
    return max(ratios, key=lambda ratio: abs(ratio - 1))


def _area_over_formula(figure: str, per_output: bool) -> Callable[[Measurements], float]:
    """The area of one component over the paper's ½·τ·N², times σ for outputs or times the bytes of a tuple."""

    def ratio(measured: Measurements) -> float:
        return _farthest_from_1([
            measured.value(figure, pair=pair, order=name)
            / ((part.sigma if per_output else SIZE_BYTES) * part.tau * part.tuples**2 / 2)
            for pair, parts in enumerate(PAIRS)
            for name, part in zip("AB", parts, strict=True)
        ])  # fmt: skip

    return ratio


def _rectangle_over_formula(measured: Measurements) -> float:
    """The area that running both components adds, over the paper's rectangle τ_A·N_A·σ_B·N_B."""
    ratios = []
    for pair, (a, b) in enumerate(PAIRS):
        alone = sum(measured.value("area", pair=pair, order=name) for name in "AB")
        for order, first, second in (("AB", a, b), ("BA", b, a)):
            more = measured.value("area", pair=pair, order=order) - alone
            ratios.append(more / (first.tau * first.tuples * second.sigma * second.tuples))
    return _farthest_from_1(ratios)


def _steeper_first(measured: Measurements) -> float:
    """The share of pairs in which running the steeper component first is better, and Component does so."""
    right = []
    for pair, (a, b) in enumerate(PAIRS):
        areas = {order: measured.value("area", pair=pair, order=order) for order in ORDERS}
        steeper, flatter = ("AB", "BA") if a.sigma / a.tau > b.sigma / b.tau else ("BA", "AB")
        right.append(areas[steeper] < areas[flatter] and math.isclose(areas["component"], areas[steeper]))
    return float(np.mean(right))


def _broken_over_unbroken(measured: Measurements) -> float:
    """The least ratio of a broken path's area to the unbroken path's."""
    return min(
        measured.value("area", path=path, broken=True) / measured.value("area", path=path, broken=False)
        for path in range(len(PATHS))
    )


def _charts(measured: Measurements) -> Sequence[PlotLine]:
    return [chart_line(label, measured, pair=0, order=order) for order, label in ORDERS.items()]


COMPONENTS = Experiment(
    name="components",
    title="Charts of components",
    setup=(
        "Components of one operator, each with a batch waiting at time 0. They run alone and in either order, in five "
        "pairs chosen so that time, selectivity, or both decide. Three paths of two operators run tuple by tuple or "
        "operator by operator. With selectivity σ exactly every 1/σ-th tuple passes."
    ),
    points=points,
    measure=measure,
    plots=(Plot("two-components", "Output completion of two components", "time", "outputs not delivered", _charts),),
    claims=(
        Claim(
            name="area-latency",
            text="The area of one component's chart is σ·½·τ·N². Ours: measured area over formula, farthest from 1.",
            paper="1",
            ours=_area_over_formula("area", per_output=True),
            band=band_near(1, 0.03),
            reading="The continuous limit; whole tuples add half a step, 1/N or 1/(σN).",
            form=".4g",
        ),
        Claim(
            name="area-memory",
            text="The area of its memory-reduction chart is β·½·τ·N², β the bytes that a tuple frees. Ours: as above.",
            paper="1",
            ours=_area_over_formula("bytes", per_output=False),
            band=band_near(1, 0.03),
            reading="The continuous limit; whole tuples add half a step, 1/N.",
            form=".4g",
        ),
        Claim(
            name="rectangle",
            text="Two components add their areas and a rectangle τ_A·N_A·σ_B·N_B, the wait of the second. Ours: "
            "measured rectangle over formula, farthest from 1.",
            paper="1",
            ours=_rectangle_over_formula,
            band=band_near(1, 0.001),
            reading="The paper prints it for selectivity 1.",
            form=".4g",
        ),
        Claim(
            name="steeper-first",
            text="Running the component with the higher σ/τ first is better. Ours: share of pairs where it is better "
            "and Component does so.",
            paper="always",
            ours=_steeper_first,
            band=band_near(1, 1e-9),
            form=".0%",
        ),
        Claim(
            name="path-unbroken",
            text="Breaking a path makes latency worse. Ours: the least area of a broken path over the unbroken one's.",
            paper="> 1",
            ours=_broken_over_unbroken,
            band=BAND_MORE,
        ),
    ),
)
