"""Uniform arrivals within capacity, for which the paper says that FIFO needs the least memory."""

from __future__ import annotations

from typing import Any

import dsms
from dsms.papers.chain.queries import table
from dsms.papers.chain.runs import LABELS, POLICIES, VISITS, policy_text, sweep
from dsms.papers.claim import Claim, band_from
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.measurements import Measurements

ROUNDING = 1e-9
SINGLE = ("two", "four", "relation")  # queries over one stream
LOADS = (0.5, 0.8, 1.0)


def _points(scale: Scale) -> list[Point]:
    return [
        each
        for seed in scale.numbers()
        for query in (*SINGLE, "several")
        for load in LOADS
        for tuples in ("fractional", "individual")
        if query in SINGLE or tuples == "individual"  # a join has whole tuples only
        for each in sweep(
            {
                "seed": seed,
                "query": query,
                "tuples": scale.of(4000, 400),
                "data": "uniform",
                "load": load,
                "model": tuples,
            }
        )
    ]


def _measure(point: Point) -> dict[str, Any]:
    plan = table(point)
    plan["run"]["tuples"] = point["model"]
    level = dsms.simulate(plan, policy_text(point)).memory.tuples
    return {"mean": level.mean, "max": level.max}


def _best_by_fifo(measured: Measurements) -> float:
    """The best other policy's mean memory over FIFO's, at the query and load where that is least."""
    return min(
        case.value("mean", policy=policy) / case.value("mean", policy="fifo")
        for query in measured.values("query")
        for load in LOADS
        for case in (measured.where(query=query, load=load),)
        for policy in POLICIES
    )


def _single(measured: Measurements, model: str) -> Measurements:
    return Measurements(row for row in measured.where(model=model).rows if row.point["query"] in SINGLE)


def _lines(measured: Measurements) -> list[PlotLine]:
    runs = measured.where(model="fractional", query="four")
    return [PlotLine(label, *runs.line("mean", "load", policy=policy)) for policy, label in LABELS.items()]


UNIFORM = Experiment(
    name="uniform-arrivals",
    title="Uniform arrivals within capacity",
    setup=f"Tuples arrive at equal intervals, at {', '.join(f'{load:.0%}' for load in LOADS)} of capacity, at the "
    f"queries over one stream. Tuples are fractional, so that each takes the same time: individual tuples pass at "
    f"random, and load the CPU within its capacity only on average. {VISITS}",
    points=_points,
    measure=_measure,
    plots=(Plot("uniform-arrivals", "Four operators, uniform arrivals", "load", "mean queue size (tuples)", _lines),),
    claims=(
        Claim(
            "fifo-least",
            "If arrivals are uniform and within capacity, FIFO needs the least memory.",
            "no number",
            lambda measured: _best_by_fifo(_single(measured, "fractional")),
            band_from(1 - ROUNDING),
            reading="Ours: the best other policy's mean memory over FIFO's, where that is least; from 1 on FIFO is "
            "best. Each tuple is finished before the next arrives, so that all policies do the same.",
            others={
                "individual tuples": lambda measured: _best_by_fifo(_single(measured, "individual")),
                "several streams at once": lambda measured: _best_by_fifo(measured.where(query="several")),
            },
        ),
    ),
)
