"""Output-completion charts: the area of one component, of two in either order, and of a path broken or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dsms.papers import Claim, Experiment, Line, Measured, Plot, Point, Scale, near
from dsms.papers.bai_zaniolo.batch import MORE, Gone, InOrder, at_zero, drawn, on_one_stream, worked_off
from dsms.planfile import plan_from
from dsms.policies.base import Policy

SIZE = 10.0  # bytes of a tuple


class Part(NamedTuple):
    """One operator with its batch."""

    tau: float
    tuples: int
    sigma: float


PAIRS = (  # chosen so that either goes first, by time alone and by selectivity
    (Part(1.0, 200, 1.0), Part(3.0, 120, 1.0)),
    (Part(4.0, 100, 1.0), Part(1.0, 300, 1.0)),
    (Part(1.0, 200, 0.25), Part(2.0, 200, 1.0)),
    (Part(2.0, 200, 1.0), Part(1.0, 200, 0.2)),
    (Part(1.0, 160, 0.5), Part(3.0, 120, 0.5)),
)
PATHS = ((1.0, 1.0), (0.25, 5.0), (5.0, 0.25))  # times of two operators in a row
ORDERS = {"AB": "A first", "BA": "B first", "component": "as Component chooses"}


def points(scale: Scale) -> list[Point]:
    found: list[Point] = []
    for seed in scale.numbers():
        found += [{"seed": seed, "pair": pair, "order": o} for pair in range(len(PAIRS)) for o in ("A", "B", *ORDERS)]
        found += [{"seed": seed, "path": path, "broken": cut} for path in range(len(PATHS)) for cut in (False, True)]
    return found


def measure(point: Point) -> dict[str, Any]:
    if "path" in point:
        return {"area": _path(PATHS[point["path"]], point["broken"]).area}
    gone = _pair(dict(zip("AB", PAIRS[point["pair"]], strict=True)), point["order"])
    return {"area": gone.area, "bytes": gone.bytes_area, **gone.outputs_left()}


def _pair(parts: dict[str, Part], order: str) -> Gone:
    here = {name: part for name, part in parts.items() if name in order or order == "component"}
    plan = plan_from({
        "streams": {n: {"size": SIZE, "arrivals": at_zero(part.tuples)} for n, part in here.items()},
        "queries": {f"q{n}": {"from": n, "operators": [{"name": f"o{n}", "cost": p.tau, "selectivity": p.sigma}]}
                    for n, p in here.items()},
        "run": {"selectivity": "spread"},
    })  # fmt: skip
    policy: str | Policy = order if order == "component" else InOrder([[f"o{name}"] for name in order])
    return worked_off(plan, policy)


def _path(taus: tuple[float, float], broken: bool) -> Gone:
    operators = [{"name": "O1", "inputs": ["s"], "cost": taus[0]}, {"name": "O2", "inputs": ["O1"], "cost": taus[1]}]
    return worked_off(on_one_stream(100, operators), InOrder([["O1"], ["O2"]] if broken else [["O1", "O2"]]))


def _farthest(ratios: Sequence[float]) -> float:
    """The ratio that is farthest from 1."""
    return max(ratios, key=lambda ratio: abs(ratio - 1))


def _alone(figure: str, per_output: bool) -> Callable[[Measured], float]:
    """Its area over ½·tau·N², times what one tuple counts."""

    def ratio(measured: Measured) -> float:
        return _farthest([
            measured.value(figure, pair=pair, order=name)
            / ((part.sigma if per_output else SIZE) * part.tau * part.tuples**2 / 2)
            for pair, parts in enumerate(PAIRS)
            for name, part in zip("AB", parts, strict=True)
        ])  # fmt: skip

    return ratio


def _rectangle(measured: Measured) -> float:
    ratios = []
    for pair, (a, b) in enumerate(PAIRS):
        alone = sum(measured.value("area", pair=pair, order=name) for name in "AB")
        for order, first, second in (("AB", a, b), ("BA", b, a)):
            more = measured.value("area", pair=pair, order=order) - alone
            ratios.append(more / (first.tau * first.tuples * second.sigma * second.tuples))
    return _farthest(ratios)


def _rule(measured: Measured) -> float:
    """The share of pairs in which the steeper component is the better first, and is chosen."""
    right = []
    for pair, (a, b) in enumerate(PAIRS):
        areas = {order: measured.value("area", pair=pair, order=order) for order in ORDERS}
        steeper, flatter = ("AB", "BA") if a.sigma / a.tau > b.sigma / b.tau else ("BA", "AB")
        right.append(areas[steeper] < areas[flatter] and math.isclose(areas["component"], areas[steeper]))
    return float(np.mean(right))


def _broken(measured: Measured) -> float:
    return min(
        measured.value("area", path=path, broken=True) / measured.value("area", path=path, broken=False)
        for path in range(len(PATHS))
    )


def _charts(measured: Measured) -> Sequence[Line]:
    return [drawn(label, measured, pair=0, order=order) for order, label in ORDERS.items()]


COMPONENTS = Experiment(
    name="components",
    title="Charts of components",
    setup=(
        "Components of one operator, each with a batch waiting at time 0, alone and in either order, in five pairs "
        "chosen so that time, selectivity, or both decide; and three paths of two operators, run tuple by tuple or "
        "operator by operator. Of selectivity σ exactly every 1/σ-th tuple passes."
    ),
    points=points,
    measure=measure,
    plots=(Plot("two-components", "Output completion of two components", "time", "outputs not delivered", _charts),),
    claims=(
        Claim(
            name="area-latency",
            text="The area of one component's chart is σ·½·τ·N²: the ratio farthest from that.",
            paper="1",
            ours=_alone("area", per_output=True),
            band=near(1, 0.03),
            reading="The continuous limit; whole tuples add half a step, 1/N or 1/(σN).",
            form=".4g",
        ),
        Claim(
            name="area-memory",
            text="The area of its memory-reduction chart is β·½·τ·N², β the bytes saved with a tuple.",
            paper="1",
            ours=_alone("bytes", per_output=False),
            band=near(1, 0.03),
            reading="The continuous limit; whole tuples add half a step, 1/N.",
            form=".4g",
        ),
        Claim(
            name="rectangle",
            text="Two components have the area of each, and the rectangle τ_A·N_A·σ_B·N_B that the second waits.",
            paper="1",
            ours=_rectangle,
            band=near(1, 0.001),
            reading="The paper prints it for selectivity 1.",
            form=".4g",
        ),
        Claim(
            name="steeper-first",
            text="The component with the higher σ/τ is better first: the share of pairs in which it is, and is chosen.",
            paper="always",
            ours=_rule,
            band=near(1, 1e-9),
            form=".0%",
        ),
        Claim(
            name="path-unbroken",
            text="Breaking a path makes latency worse: the least area of a broken one over that of the unbroken.",
            paper="> 1",
            ours=_broken,
            band=MORE,
        ),
    ),
)
