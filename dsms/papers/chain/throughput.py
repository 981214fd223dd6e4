"""Throughput: the number of results under each policy, in the long run and during one burst."""

from __future__ import annotations

from typing import Any

import dsms
from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.queries import CHARTS, horizon, path, table
from dsms.papers.chain.runs import LABELS, POLICIES, SAMPLES, VISITS, OutputObserver, policy_text, sweep
from dsms.papers.claim import Claim, Figure, band_above, band_from, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale
from dsms.papers.measurements import Measurements

BURST = 3  # arrival rate of the burst, as a multiple of the CPU's capacity


def _points(scale: Scale) -> list[Point]:
    return [
        each
        for seed in scale.numbers()
        for data, tuples in (("burst", scale.of(3000, 600)), (SYNTHETIC, scale.of(40_000, 4000)))
        for each in sweep({"seed": seed, "query": "two", "data": data, "tuples": tuples})
    ]


def _measure(point: Point) -> dict[str, Any]:
    if point["data"] == "burst":
        points = CHARTS[point["query"]]
        arrivals = {"kind": "constant", "utilisation": BURST, "count": point["tuples"]}
        plan: dict[str, Any] = {
            "streams": {"s": {"arrivals": arrivals}},
            "queries": {"q": {"from": "s", "operators": path(points)}},
            "run": {"seed": point["seed"]},
        }
    else:
        plan = table(point)
    at = [place * horizon(point) / SAMPLES for place in range(SAMPLES + 1)]
    observer = OutputObserver(at)
    run = dsms.simulate(plan, policy_text(point), observers=[observer])
    return {"rate": run.output_rate, "outputs": run.outputs, "at": at, "left": observer.left}


def _rates_apart(measured: Measurements) -> float:
    """The greatest relative difference of a policy's throughput from FIFO's."""
    return max(
        abs(case.value("rate", policy=policy) / case.value("rate", policy="fifo") - 1)
        for data in ("burst", SYNTHETIC)
        for case in (measured.where(data=data),)
        for policy in POLICIES
    )


def _fifo_results_at_burst_end(other: str) -> Figure:
    """FIFO's results at the end of the burst over another policy's."""

    def results_ratio(measured: Measurements) -> float:
        case = measured.where(data="burst")
        fifo, theirs = (case.series("left", policy=policy)[SAMPLES // BURST] for policy in ("fifo", other))
        return fifo / theirs if theirs else float("inf")

    return results_ratio


def _fifo_ahead(measured: Measurements) -> float:
    """The share of instants where FIFO has more results than Chain, among those where they differ."""
    case = measured.where(data=SYNTHETIC)
    pairs = zip(case.series("left", policy="fifo"), case.series("left", policy="chain"), strict=True)
    is_ahead = [fifo > chain for fifo, chain in pairs if fifo != chain]
    return sum(is_ahead) / len(is_ahead) if is_ahead else float("nan")


def _lines(measured: Measurements) -> list[PlotLine]:
    case = measured.where(data="burst")
    return [
        PlotLine(label, case.series("at", policy=policy), case.series("left", policy=policy))
        for policy, label in LABELS.items()
    ]


THROUGHPUT = Experiment(
    name="throughput",
    title="Throughput in the long run and in bursts",
    setup=f"The query with two operators: one burst at {BURST} times the CPU's capacity, then no arrivals until all "
    f"tuples are processed; and synthetic data as in the experiment with two operators. {VISITS}",
    points=_points,
    measure=_measure,
    plots=(Plot("throughput", "Results of one burst", "time", "results so far", _lines),),
    claims=(
        Claim(
            "same-in-the-long-run",
            "Throughput is the same under all policies in the long run (ours: the largest difference).",
            "the same",
            _rates_apart,
            band_up_to(0.001),
            form=".2%",
            reading="Throughput is all results over the time until the last; less than 0.1 % apart counts as the same.",
        ),
        Claim(
            "fifo-more-in-a-burst",
            "During a burst FIFO yields more results than Chain.",
            "more; no number",
            _fifo_results_at_burst_end("chain"),
            band_from(1.05),
            band_above(1.0),
            reading="Ours: FIFO's results at the end of the burst over Chain's; 5 % or more counts as more.",
        ),
        Claim(
            "fifo-ahead",
            "Whenever there is a difference, FIFO has more results.",
            "no number",
            _fifo_ahead,
            band_from(0.95),
            band_from(0.5),
            reading="Ours: the share of instants where FIFO is ahead, among those where the numbers of results differ; "
            "on synthetic data.",
            form=".1%",
        ),
    ),
)
