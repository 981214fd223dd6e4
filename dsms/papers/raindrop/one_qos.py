"""Figure 6.3: selectors under a single requirement, compared with the best single algorithm for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dsms.papers.claim import Claim, band_from, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Scale
from dsms.papers.measurements import Measurements
from dsms.papers.raindrop.plans import CHOSEN
from dsms.papers.raindrop.runs import LABELS, SELECTORS, SINGLE, VARIANTS, measure, point
from dsms.papers.raindrop.scores import Figure, best_single, mean, run_series, singles
from dsms.papers.raindrop.single import STATISTIC_PLOTS, over_time

QOS = {"memory": "queued", "delay": "delay", "rate": "output_rate"}
FIGURES = {"short": "in the run of 30 s", "long": "in a run of 300 s", "filters": "on plan 1"}


def _run_parameters(measured: Measurements, place: str) -> dict[str, Any]:
    """The parameters of a group of runs: the thesis's 30 s, the longer ones, or plan 1."""
    lengths = measured.values("seconds")
    return {"plan": 1 if place == "filters" else 2, "seconds": lengths[-1 if place == "long" else 0]}


def points(scale: Scale) -> list[dict[str, Any]]:
    """The four single algorithms, and every selector for every requirement: 30 s, as in the thesis, and longer."""
    sweep = []
    for seed in scale.numbers():
        for plan, seconds in ((2, 30), (2, scale.of(300, 40)), (1, 30)):
            sweep += [point(name, seconds, seed, plan) for name in SINGLE]
            for qos in QOS:
                names = [*SELECTORS, *VARIANTS] if plan == 2 else ["roulette", "highest score"]
                if scale.quick and seconds > 30:
                    names.remove("predictive")  # it simulates ahead, which takes long
                sweep += [point(name, seconds, seed, plan, f"{qos}=1") for name in names]
    return sweep


def _lines(qos: str) -> Callable[[Measurements], list[PlotLine]]:
    def lines(measured: Measurements) -> list[PlotLine]:
        where = _run_parameters(measured, "short")
        alone = {LABELS[name]: run for name, run in singles(measured, **where).items()}
        selectors = {LABELS[name]: run_series(measured, by=name, qos=f"{qos}=1", **where) for name in SELECTORS}
        return [over_time(label, run, qos) for label, run in {**alone, **selectors}.items()]

    return lines


def _score_bars(measured: Measurements) -> list[PlotLine]:
    """The mean score that the thesis's selector gave each algorithm, by requirement."""
    where, places = _run_parameters(measured, "long"), [float(place) for place in range(len(QOS))]
    return [
        PlotLine(
            label,
            places,
            [measured.value(f"score {name}", by="roulette", qos=f"{qos}=1", **where) for qos in QOS],
        )
        for name, label in SINGLE.items()
    ]


def _over_best(qos: str, by: str, place: str) -> Figure:
    """The selector's mean, divided by that of the best single algorithm: for a rate above 1 is better, else below."""

    def ratio(measured: Measurements) -> float:
        where, statistic = _run_parameters(measured, place), QOS[qos]
        alone = [run.means()[statistic] for run in singles(measured, **where).values()]
        best = max(alone) if qos == "rate" else min(alone)
        return run_series(measured, by=by, qos=f"{qos}=1", **where).means()[statistic] / best

    return ratio


def _preference(qos: str, by: str, place: str) -> Figure:
    """How many times as often the selector chose the best single algorithm as the most chosen other one."""

    def preference(measured: Measurements) -> float:
        where = _run_parameters(measured, place)
        best = best_single(measured, f"{qos}=1", **where)
        picks = {name: measured.value(f"picked {name}", by=by, qos=f"{qos}=1", **where) for name in SINGLE}
        return picks.pop(best) / max(max(picks.values()), 1.0)

    return preference


def _tuning_effect(qos: str, other: str, by: str, place: str) -> Figure:
    """The statistic in the run tuned for it, divided by that in the run tuned for another."""

    def effect(measured: Measurements) -> float:
        where, statistic = _run_parameters(measured, place), QOS[qos]
        tuned, untuned = (mean(statistic, by=by, qos=f"{each}=1", **where)(measured) for each in (qos, other))
        return tuned / untuned

    return effect


def _others(figure: Callable[[str, str], Figure]) -> dict[str, Figure]:
    """Other readings of a figure: other selectors in 30 s, and longer runs and plan 1."""
    readings = {f"{name}, {FIGURES['short']}": figure(name, "short") for name in ("highest score", *VARIANTS)}
    for name in ("roulette", "highest score"):
        readings |= {f"{name}, {FIGURES[place]}": figure(name, place) for place in ("long", "filters")}
    return readings


def _claims(by: str) -> list[Claim]:
    """The thesis's claims about its selector, checked for this selector."""
    whose, mark = ("", "") if by == "roulette" else (f" (selected by: {by})", f", {by}")

    def claim(name: str, text: str, paper: str, figure: Callable[[str, str], Figure], **rest: Any) -> Claim:
        others = _others(figure) if by == "roulette" else {}
        return Claim(f"{name}{mark}", f"{text}{whose}.", paper, figure(by, "short"), others=others, **rest)

    return [
        *(
            claim(qos, f"With {qos} alone required, adaptive is about as good as the best or better", "about 1",
                  partial(_over_best, qos), band=band_from(0.9) if qos == "rate" else band_up_to(1.1),
                  reading=f"Ours is its mean {qos} over that of the best single algorithm; about is within a tenth.",
                  because=MIXED)
            for qos in QOS
        ),
        *(
            claim(f"{qos}, chosen", f"With {qos} alone required, the best algorithm is chosen most often", "above 1",
                  partial(_preference, qos), band=band_from(1.0001),
                  reading="Ours is the number of its choices over that of the next most chosen.", because=FLAT)
            for qos in ("memory", "delay")
        ),
        *(
            claim(f"{qos}, tuned", f"Tuned for {qos} it does better in {qos} than tuned for {other}", "below 1",
                  partial(_tuning_effect, qos, other), band=band_up_to(0.98), direction=band_up_to(0.9999),
                  because=FLAT,
                  reading=f"Ours is the {qos} of the one run over that of the other; 2 % or more count as better, as "
                  "they do in the selector.")
            for qos, other in (("memory", "delay"), ("delay", "memory"))
        ),
    ]  # fmt: skip


MIXED = (
    "The run is a mixture of all four: mean scores are much alike, so each algorithm gets about a quarter of the "
    "wheel. The queue that one leaves behind counts as the next one's memory and delay (figure 6.3-scores)."
)
FLAT = (
    "Mean scores are much alike and do not follow how good the algorithms are alone (figure 6.3-scores). The "
    "measurements of 2 s under one algorithm mostly reflect the queues its predecessors left and the current arrivals, "
    "and a mean is divided by the spread of the whole history, which a burst widens."
)

ONE_QOS = Experiment(
    name="one-qos",
    title="One requirement at a time",
    setup=(
        f"Plan 2 for 30 s after 10 s of warm-up and exploration. {CHOSEN} Evaluation every 2 s, statistics every 1 s, "
        "weight of old data 0.875, decay 0.9 per evaluation (chosen). Other readings: the highest score instead of the "
        "wheel, scores that fade to 0, other decays, algorithms kept for 10 s, 300 s, plan 1."
    ),
    points=points,
    measure=measure,
    plots=(
        *(
            Plot(f"figure-6.3-{qos}", f"Only {qos} required", "time (s)", STATISTIC_PLOTS[qos][0], _lines(qos))
            for qos in QOS
        ),
        Plot("figure-6.3-scores", "Mean scores, on the wheel, in the longer run", "required", "score (equation 5.2)",
             _score_bars, bars=True, ticks=tuple(QOS)),
    ),
    claims=tuple(_claims("roulette") + _claims("predictive")),
)  # fmt: skip
