"""How many results there are, in the long run and in a burst."""

from __future__ import annotations

from typing import Any

import dsms
from dsms.papers.chain.data import SYNTHETIC
from dsms.papers.chain.queries import CHARTS, horizon, path, table
from dsms.papers.chain.runs import LABELS, POLICIES, SAMPLES, VISITS, Leaving, policy_text, sweep
from dsms.papers.claim import Claim, Figure, above, at_least, at_most
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale
from dsms.papers.measured import Measured

BURST = 3  # times what the CPU can handle


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
    leaving = Leaving(at)
    run = dsms.simulate(plan, policy_text(point), observers=[leaving])
    return {"rate": run.output_rate, "outputs": run.outputs, "at": at, "left": leaving.left}


def _rates_apart(measured: Measured) -> float:
    """By which share a policy's throughput differs from FIFO's, at most."""
    return max(
        abs(case.value("rate", policy=policy) / case.value("rate", policy="fifo") - 1)
        for data in ("burst", SYNTHETIC)
        for case in (measured.where(data=data),)
        for policy in POLICIES
    )


def _by_the_end_of_the_burst(other: str) -> Figure:
    """FIFO's results by then, by another policy's."""

    def found(measured: Measured) -> float:
        case = measured.where(data="burst")
        fifo, theirs = (case.series("left", policy=policy)[SAMPLES // BURST] for policy in ("fifo", other))
        return fifo / theirs if theirs else float("inf")

    return found


def _ahead(measured: Measured) -> float:
    """Of the instants at which FIFO and Chain have given different numbers of results, those where FIFO is ahead."""
    case = measured.where(data=SYNTHETIC)
    pairs = zip(case.series("left", policy="fifo"), case.series("left", policy="chain"), strict=True)
    different = [fifo > chain for fifo, chain in pairs if fifo != chain]
    return sum(different) / len(different) if different else float("nan")


def _left(measured: Measured) -> list[Line]:
    case = measured.where(data="burst")
    return [
        Line(label, case.series("at", policy=policy), case.series("left", policy=policy))
        for policy, label in LABELS.items()
    ]


THROUGHPUT = Experiment(
    name="throughput",
    title="Throughput in the long run and in bursts",
    setup=f"The query with two operators: one burst at {BURST} times what the CPU can handle, then nothing until all "
    f"is done; and synthetic data as in the experiment with two operators. {VISITS}",
    points=_points,
    measure=_measure,
    plots=(Plot("throughput", "Results of one burst", "time", "results so far", _left),),
    claims=(
        Claim(
            "same-in-the-long-run",
            "Throughput is the same under all policies in the long run (the largest difference).",
            "the same",
            _rates_apart,
            at_most(0.001),
            form=".2%",
            reading="Results by the time it takes to give them all; the same is less than 0.1 % apart.",
        ),
        Claim(
            "fifo-more-in-a-burst",
            "During a burst FIFO yields more results than Chain.",
            "more; no number",
            _by_the_end_of_the_burst("chain"),
            at_least(1.05),
            above(1.0),
            reading="FIFO's results when the burst ends, by Chain's; more is 5 % or more.",
        ),
        Claim(
            "fifo-ahead",
            "Whenever there is a difference, it is FIFO that has given more results.",
            "no number",
            _ahead,
            at_least(0.95),
            at_least(0.5),
            reading="On synthetic data, of the instants at which the numbers of results so far differ.",
            form=".1%",
        ),
    ),
)
