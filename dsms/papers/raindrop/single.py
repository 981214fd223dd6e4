"""Figure 6.2: the four single algorithms over time, and the strengths and weaknesses the thesis claims for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dsms.papers.claim import Claim, band_from, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Scale
from dsms.papers.measurements import Measurements
from dsms.papers.raindrop.plans import CHOSEN, READINGS
from dsms.papers.raindrop.runs import SINGLE, measure, point
from dsms.papers.raindrop.scores import Figure, RunSeries, singles

TAIL_S = 30  # another reading of "at the end"
STATISTIC_PLOTS: dict[
    str, tuple[str, Callable[[RunSeries], Any]]
] = {  # by statistic: the axis, and the values of each second
    "memory": ("tuples in queues", lambda run: run.queued),
    "delay": ("mean delay so far (s)", lambda run: run.delay_so_far),
    "rate": ("results so far", lambda run: np.cumsum(run.results)),
}


def points(scale: Scale) -> list[dict[str, Any]]:
    """Every algorithm on plan 2 in every reading, and on plan 1."""
    seconds = scale.of(300, 60)
    cases = [(2, reading) for reading in READINGS] + [(1, "plain")]
    return [
        point(name, seconds, seed, plan, reading=reading)
        for seed in scale.numbers()
        for plan, reading in cases
        for name in SINGLE
    ]


def over_time(label: str, run: RunSeries, statistic: str) -> PlotLine:
    """The line of one run, without the seconds that have no value."""
    values = STATISTIC_PLOTS[statistic][1](run)
    places = np.flatnonzero(~np.isnan(values))
    return PlotLine(label, (places + 1.0).tolist(), values[places].tolist())


def _lines(statistic: str) -> Callable[[Measurements], list[PlotLine]]:
    def lines(measured: Measurements) -> list[PlotLine]:
        runs = singles(measured, plan=2, reading="plain")
        return [over_time(SINGLE[name], run, statistic) for name, run in runs.items()]

    return lines


Comparison = Callable[[Mapping[str, RunSeries]], float]  # of the runs of the four algorithms


def _by_reading(compare: Comparison) -> tuple[Figure, dict[str, Figure]]:
    """A comparison of the four algorithms in the plain reading, and in the others."""

    def of(**conditions: object) -> Figure:
        return lambda measured: compare(singles(measured, **conditions))

    others = {name: of(plan=2, reading=name) for name in READINGS if name != "plain"}
    return of(plan=2, reading="plain"), {**others, "plan 1": of(plan=1, reading="plain")}


def _means(runs: Mapping[str, RunSeries], statistic: str) -> dict[str, float]:
    return {name: run.means()[statistic] for name, run in runs.items()}


def _memory_ratio(runs: Mapping[str, RunSeries]) -> float:
    """The greater memory of MTIQ and Chain over the smaller of FIFO and RR."""
    held = _means(runs, "queued")
    return max(held["mtiq"], held["chain"]) / min(held["fifo"], held["rr"])


def _delay_ratio(runs: Mapping[str, RunSeries]) -> float:
    """The smaller delay of MTIQ and Chain over the greater of FIFO and RR."""
    delay = _means(runs, "delay")
    return min(delay["mtiq"], delay["chain"]) / max(delay["fifo"], delay["rr"])


def _fifo_memory_position(runs: Mapping[str, RunSeries]) -> float:
    """FIFO's memory on a scale where the least of the four is 0 and the greatest 1."""
    held = _means(runs, "queued")
    return (held["fifo"] - min(held.values())) / (max(held.values()) - min(held.values()))


def _fifo_delay_over_least(runs: Mapping[str, RunSeries]) -> float:
    delay = _means(runs, "delay")
    return delay["fifo"] / min(delay.values())


def _fifo_rate_over_others(runs: Mapping[str, RunSeries]) -> float:
    rate = _means(runs, "output_rate")
    return rate.pop("fifo") / (sum(rate.values()) / len(rate))


def _rr_memory_over_least(runs: Mapping[str, RunSeries]) -> float:
    held = _means(runs, "queued")
    return held["rr"] / min(held.values())


def _burstiness_ratio(runs: Mapping[str, RunSeries]) -> float:
    """MTIQ's index of dispersion (variance over mean) of the results per second over FIFO's."""
    index = {name: float(run.results.var() / run.results.mean()) for name, run in runs.items()}
    return index["mtiq"] / index["fifo"]


def _worst_delay_ratio(runs: Mapping[str, RunSeries]) -> float:
    """Chain's mean delay in its worst second over FIFO's."""
    worst = {name: float(np.nanmax(run.delay)) for name, run in runs.items()}
    return worst["chain"] / worst["fifo"]


def _delay_ratio_at_end(measured: Measurements) -> float:
    """The ratio of delays in the last seconds alone; NaN if one of the four has no result then."""
    runs = singles(measured, plan=2, reading="plain")
    return _delay_ratio({name: RunSeries(*(column[-TAIL_S:] for column in run)) for name, run in runs.items()})


def _claim(name: str, text: str, paper: str, compare: Comparison, **rest: Any) -> Claim:
    ours, others = _by_reading(compare)
    return Claim(name, text, paper, ours, others={**others, **rest.pop("more", {})}, **rest)


STATED = "Of the thesis's numbers only the order is legible."

SINGLES = Experiment(
    name="single-algorithms",
    title="Single algorithms over time",
    setup=(
        f"Plan 2 under each of the four for 300 s. {CHOSEN} The workload rule decides how many tuples a run takes "
        "(RATIO 0.3, THRESHOLD 50). The first 10 s, in which a selector would warm up and explore, are left out. Other "
        "readings: one tuple a turn; half of an operator's time is a start-up cost of each run; a load of 1.2; plan 1."
    ),
    points=points,
    measure=measure,
    plots=tuple(
        Plot(f"figure-6.2-{statistic}", f"Single algorithms: {statistic}", "time (s)", axis, _lines(statistic))
        for statistic, (axis, _) in STATISTIC_PLOTS.items()
    ),
    claims=(
        _claim("memory", "MTIQ and Chain hold least.", "below 1", _memory_ratio, band=band_up_to(0.9999),
               reading="Ours is the greater mean memory of MTIQ and Chain over the smaller of FIFO and RR. "
               f"{STATED}"),
        _claim("delay at the end", "MTIQ and Chain have the worst delay at the end.", "above 1", _delay_ratio,
               band=band_from(1.0001), more={"the last 30 s alone": _delay_ratio_at_end},
               reading="Statistics start with the execution, so at the end they are the run's means. Ours is the "
               "smaller delay of MTIQ and Chain over the greater of FIFO and RR."),
        _claim("FIFO's memory", "FIFO's memory is mediocre.", "between best and worst", _fifo_memory_position,
               band=(0.2, 0.8),
               reading="Ours is 0 where FIFO holds least of the four, 1 where it holds most; 0.2 to 0.8 counts as "
               "mediocre.",
               because="On plan 2 FIFO holds the most of the four. RR gives each filter, which discards half of its "
               "input, a run in every round; FIFO runs filters no more often than the rest of the plan needs."),
        _claim("FIFO's delay", "FIFO's delay is low.", "the least or near it", _fifo_delay_over_least,
               band=band_up_to(1.1), reading="Ours is FIFO's mean delay over the least of the four."),
        _claim("FIFO's rate", "FIFO's output rate is low (table of traits).", "below 1", _fifo_rate_over_others,
               band=band_up_to(0.99), reading="Ours is FIFO's rate over the mean rate of the other three.",
               because="Every algorithm puts out the same in the long run. Tuples without results at the end wait in "
               "queues, and FIFO has the fewest of them near the output. FIFO could be slower only if a run took its "
               "full time for any number of tuples, and FIFO ran one at a time (table 1.2)."),
        _claim("RR's memory", "RR is weak in memory (table of traits).", "above 1", _rr_memory_over_least,
               band=band_from(1.1), reading="Ours is RR's mean memory over the least of the four."),
        _claim("MTIQ's output", "MTIQ's output is bursty, FIFO's constant (table of traits).", "above 1",
               _burstiness_ratio, band=band_from(1.1), direction=band_from(1.0001),
               reading="Ours is the variance over mean of the results per second, MTIQ's over FIFO's."),
        _claim("Chain in bursts", "Chain's response in bursts is poor (table of traits).", "above 1",
               _worst_delay_ratio, band=band_from(1.1),
               reading="Ours is the mean delay of the worst second, Chain's over FIFO's."),
    ),
)  # fmt: skip
