"""Figure 6.2: the single algorithms over time, and the traits that the thesis gives each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dsms.papers.claim import Claim, at_least, at_most
from dsms.papers.experiment import Experiment, Line, Plot, Scale
from dsms.papers.measured import Measured
from dsms.papers.raindrop.plans import CHOSEN, READINGS
from dsms.papers.raindrop.runs import SINGLE, measure, point
from dsms.papers.raindrop.scores import Course, Figure, singles

LAST = 30  # seconds: what may be meant by "at the end"
TALE: dict[str, tuple[str, Callable[[Course], Any]]] = {  # by statistic: the axis, and what is drawn second by second
    "memory": ("tuples in queues", lambda run: run.queued),
    "delay": ("mean delay so far (s)", lambda run: run.delay_so_far),
    "rate": ("results so far", lambda run: np.cumsum(run.results)),
}


def points(scale: Scale) -> list[dict[str, Any]]:
    """Every algorithm on plan 2 by every reading, and on plan 1."""
    seconds = scale.of(300, 60)
    places = [(2, reading) for reading in READINGS] + [(1, "plain")]
    return [
        point(name, seconds, seed, plan, reading=reading)
        for seed in scale.numbers()
        for plan, reading in places
        for name in SINGLE
    ]


def over_time(label: str, run: Course, statistic: str) -> Line:
    """One run in a figure, from when there is something to be drawn."""
    values = TALE[statistic][1](run)
    places = np.flatnonzero(~np.isnan(values))
    return Line(label, (places + 1.0).tolist(), values[places].tolist())


def _drawn(statistic: str) -> Callable[[Measured], list[Line]]:
    def lines(measured: Measured) -> list[Line]:
        runs = singles(measured, plan=2, reading="plain")
        return [over_time(SINGLE[name], run, statistic) for name, run in runs.items()]

    return lines


def _each(worked: Callable[[Mapping[str, Course]], float]) -> tuple[Figure, dict[str, Figure]]:
    """The same comparison of the four by the plain reading, and by the others."""

    def of(**wanted: object) -> Figure:
        return lambda measured: worked(singles(measured, **wanted))

    others = {name: of(plan=2, reading=name) for name in READINGS if name != "plain"}
    return of(plan=2, reading="plain"), {**others, "plan 1": of(plan=1, reading="plain")}


def _means(runs: Mapping[str, Course], statistic: str) -> dict[str, float]:
    return {name: run.means()[statistic] for name, run in runs.items()}


def _memory(runs: Mapping[str, Course]) -> float:
    held = _means(runs, "queued")
    return max(held["mtiq"], held["chain"]) / min(held["fifo"], held["rr"])


def _delay(runs: Mapping[str, Course]) -> float:
    late = _means(runs, "delay")
    return min(late["mtiq"], late["chain"]) / max(late["fifo"], late["rr"])


def _mediocre(runs: Mapping[str, Course]) -> float:
    held = _means(runs, "queued")
    return (held["fifo"] - min(held.values())) / (max(held.values()) - min(held.values()))


def _quick(runs: Mapping[str, Course]) -> float:
    late = _means(runs, "delay")
    return late["fifo"] / min(late.values())


def _rate(runs: Mapping[str, Course]) -> float:
    rate = _means(runs, "output_rate")
    return rate.pop("fifo") / (sum(rate.values()) / len(rate))


def _robin(runs: Mapping[str, Course]) -> float:
    held = _means(runs, "queued")
    return held["rr"] / min(held.values())


def _bursty(runs: Mapping[str, Course]) -> float:
    """Variance by mean of what comes out in a second."""
    index = {name: float(run.results.var() / run.results.mean()) for name, run in runs.items()}
    return index["mtiq"] / index["fifo"]


def _burst(runs: Mapping[str, Course]) -> float:
    worst = {name: float(np.nanmax(run.delay)) for name, run in runs.items()}
    return worst["chain"] / worst["fifo"]


def _last(measured: Measured) -> float:
    """The delays of the last seconds alone; NaN where one of the four puts nothing out then."""
    runs = singles(measured, plan=2, reading="plain")
    return _delay({name: Course(*(column[-LAST:] for column in run)) for name, run in runs.items()})


def _claim(name: str, text: str, paper: str, worked: Callable[[Mapping[str, Course]], float], **rest: Any) -> Claim:
    ours, others = _each(worked)
    return Claim(name, text, paper, ours, others={**others, **rest.pop("more", {})}, **rest)


STATED = "Nothing but the order is stated in numbers that can be read."

SINGLES = Experiment(
    name="single-algorithms",
    title="Single algorithms over time",
    setup=(
        f"Plan 2 under each of the four for 300 s. {CHOSEN} A run takes what the workload rule says (RATIO 0.3, "
        "THRESHOLD 50). The first 10 s, in which a selector would warm up and explore, are left out. Other "
        "readings: one tuple a turn; half of an operator's time is a start-up cost of each run; 1.2 of "
        "the CPU needed; plan 1."
    ),
    points=points,
    measure=measure,
    plots=tuple(
        Plot(f"figure-6.2-{statistic}", f"Single algorithms: {statistic}", "time (s)", axis, _drawn(statistic))
        for statistic, (axis, _) in TALE.items()
    ),
    claims=(
        _claim("memory", "MTIQ and Chain hold least.", "below 1", _memory, band=at_most(0.9999),
               reading=f"Ours is the more of MTIQ's and Chain's mean memory by the less of FIFO's and RR's. {STATED}"),
        _claim("delay at the end", "MTIQ and Chain have the worst delay at the end.", "above 1", _delay,
               band=at_least(1.0001), more={"the last 30 s alone": _last},
               reading="Statistics are from the beginning of execution, so at the end they are the run's means. Ours "
               "is the less of MTIQ's and Chain's delay by the more of FIFO's and RR's."),
        _claim("FIFO's memory", "FIFO's memory is mediocre.", "between best and worst", _mediocre, band=(0.2, 0.8),
               reading="Ours is 0 where FIFO holds least of the four, 1 where it holds most; a fifth to four fifths is "
               "called mediocre.",
               because="On plan 2 FIFO holds the most of the four: RR gives either filter, which discards half of what "
               "it takes, a run in every round; FIFO runs them only as often as the rest needs."),
        _claim("FIFO's delay", "FIFO's delay is low.", "the least or near it", _quick, band=at_most(1.1),
               reading="Ours is FIFO's mean delay by the least of the four."),
        _claim("FIFO's rate", "FIFO's output rate is low (table of traits).", "below 1", _rate, band=at_most(0.99),
               reading="Ours is FIFO's rate by the mean of the other three's.",
               because="Every algorithm puts out the same in the long run; what has not come out at the end waits in "
               "queues, and of that FIFO has the least that is nearly done. Only where a run takes its full time "
               "whatever it handles, and FIFO but one tuple (table 1.2), could it be slower."),
        _claim("RR's memory", "RR is weak in memory (table of traits).", "above 1", _robin, band=at_least(1.1),
               reading="Ours is RR's mean memory by the least of the four."),
        _claim("MTIQ's output", "MTIQ's output is bursty, FIFO's constant (table of traits).", "above 1", _bursty,
               band=at_least(1.1), direction=at_least(1.0001),
               reading="Ours is the variance by mean of the results in a second, MTIQ's by FIFO's."),
        _claim("Chain in bursts", "Chain's response in bursts is poor (table of traits).", "above 1", _burst,
               band=at_least(1.1), reading="Ours is the worst second's mean delay, Chain's by FIFO's."),
    ),
)  # fmt: skip
