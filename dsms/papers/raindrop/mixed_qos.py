"""Figures 6.4 to 6.7: selectors under several weighted requirements, and under requirements that change in the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dsms.config.qos import Qos
from dsms.papers.claim import Claim, band_from
from dsms.papers.experiment import Experiment, Plot, PlotLine, Scale
from dsms.papers.measurements import Measurements
from dsms.papers.raindrop.plans import CHOSEN, READINGS
from dsms.papers.raindrop.runs import LABELS, SELECTORS, SINGLE, VARIANTS, measure, point
from dsms.papers.raindrop.scores import Figure, RunSeries, lead, ratios, run_series, scores, singles
from dsms.papers.raindrop.single import STATISTIC_PLOTS, over_time

WEIGHTS = {
    "6.4": ("delay=0.7,rate=0.3", "70 % delay, 30 % output rate"),
    "6.5": ("delay=0.3,rate=0.7", "30 % delay, 70 % output rate"),
    "6.6": ("delay=0.5,rate=0.5", "50 % delay, 50 % output rate"),
    "6.7": ("memory=0.33,delay=0.33,rate=0.34", "memory, delay and output rate alike"),
}
SCORE_STEP_S = 5  # between two points of a line of scores


def points(scale: Scale) -> list[dict[str, Any]]:
    """The four single algorithms, and every selector for every mixture of requirements, in every reading."""
    seconds, sweep = scale.of(300, 30), []
    for seed in scale.numbers():
        for reading in READINGS:
            names = [*SELECTORS, *VARIANTS] if reading == "plain" else ["roulette", "highest score"]
            sweep += [point(name, seconds, seed, reading=reading) for name in SINGLE]
            sweep += [point(name, seconds, seed, qos=q, reading=reading) for q, _ in WEIGHTS.values() for name in names]
    return sweep


def _compared_runs(measured: Measurements, qos: str) -> dict[str, RunSeries]:
    selectors = {name: run_series(measured, by=name, qos=qos, reading="plain") for name in SELECTORS}
    return {**singles(measured, reading="plain"), **selectors}


def _score_lines(qos: str) -> Callable[[Measurements], list[PlotLine]]:
    """The score of each run from its beginning up to each instant."""

    def lines(measured: Measurements) -> list[PlotLine]:
        runs = _compared_runs(measured, qos)
        length = len(next(iter(runs.values())).queued)
        ends = list(range(SCORE_STEP_S, length + 1, SCORE_STEP_S))
        prefixes = [[RunSeries(*(column[:end] for column in run)) for run in runs.values()] for end in ends]
        by_end = np.array([scores(each, Qos.of(qos)) for each in prefixes])
        xs = [float(end) for end in ends]
        return [PlotLine(LABELS[name], xs, by_end[:, i].tolist()) for i, name in enumerate(runs)]

    return lines


def _statistic_lines(qos: str, statistic: str) -> Callable[[Measurements], list[PlotLine]]:
    return lambda measured: [
        over_time(LABELS[name], run, statistic) for name, run in _compared_runs(measured, qos).items()
    ]


def _plots(figure: str, qos: str, title: str) -> list[Plot]:
    parts = [part.partition("=")[0] for part in qos.split(",")]
    return [
        Plot(f"figure-{figure}", title, "time (s)", "score so far (equation 5.2)", _score_lines(qos)),
        *(
            Plot(
                f"figure-{figure}-{name}",
                f"{title}: {name}",
                "time (s)",
                STATISTIC_PLOTS[name][0],
                _statistic_lines(qos, name),
            )
            for name in parts
        ),
    ]


def _others(qos: str) -> dict[str, Figure]:
    figures = {name: lead(name, qos, reading="plain") for name in ("highest score", *VARIANTS)}
    for reading in READINGS:
        if reading != "plain":
            figures |= {
                f"{name}, {reading}": lead(name, qos, reading=reading) for name in ("roulette", "highest score")
            }
    return {**figures, "judged by ratios to the best": lead("roulette", qos, ratios, reading="plain")}


def _claims(figure: str, qos: str, title: str) -> list[Claim]:
    reading = (
        "Ours is 0 where the selector's score equals the mean of the single algorithms, 1 where it equals the best of "
        "them; from 0.5 on the direction is right."
    )
    return [
        Claim(f"figure {figure}", f"{title}: adaptive leads.", "1 or more", lead("roulette", qos, reading="plain"),
              band_from(0.95), band_from(0.5), reading=reading, because=WHEEL, others=_others(qos)),
        Claim(f"figure {figure}, predictive", f"{title}: adaptive leads (selected by looking ahead).", "1 or more",
              lead("predictive", qos, reading="plain"), band_from(0.95), band_from(0.5), reading=reading,
              because="It looks ahead until queues are empty, where output rates hardly differ, while tuples left in "
              "queues at the end of the run make FIFO's rate the highest. By memory and delay alone it expects RR to "
              "be as good.",
              others={"judged by ratios to the best": lead("predictive", qos, ratios, reading="plain")}),
    ]  # fmt: skip


WHEEL = (
    "One of the four algorithms is best for the mixture all the time, but the wheel keeps choosing the others. Tuples "
    "that one leaves in the queues count against its successor, so that scores do not show well which is best (figure "
    "6.3-scores). Taking the highest score instead of the wheel is better in some readings and seeds, worse in others."
)

MIXED_QOS = Experiment(
    name="mixed-qos",
    title="Several weighted requirements",
    setup=(
        f"Plan 2 for 300 s after 10 s of warm-up and exploration. {CHOSEN} Evaluation every 2 s, statistics every 1 s, "
        "weight of old data 0.875, decay 0.9 per evaluation (chosen). The score of a run is equation 5.2 of its means, "
        "with all compared runs as the history. Other readings: as in figure 6.3, one tuple a turn, start-up costs, "
        "overload."
    ),
    points=points,
    measure=measure,
    plots=tuple(plot for figure, weighed in WEIGHTS.items() for plot in _plots(figure, *weighed)),
    claims=tuple(claim for figure, weighed in WEIGHTS.items() for claim in _claims(figure, *weighed)),
)  # fmt: skip


def changed_points(scale: Scale) -> list[dict[str, Any]]:
    """The QoS requires delay at first, and memory from half-time on."""
    seconds = scale.of(300, 40)
    return [
        point(name, seconds, seed, qos="delay=1", then="memory=1")
        for seed in scale.numbers()
        for name in SELECTORS
    ]  # fmt: skip


def _choice_shift(by: str) -> Figure:
    """The rise of the share of choices that select Chain or MTIQ, which hold least, after the change."""

    def shift(measured: Measurements) -> float:
        runs = measured.where(by=by)
        late = {name: runs.value(f"picked late {name}") for name in SINGLE}
        early = {name: runs.value(f"picked {name}") - late[name] for name in SINGLE}
        shares = [(c["chain"] + c["mtiq"]) / max(sum(c.values()), 1.0) for c in (late, early)]
        return shares[0] - shares[1]

    return shift


def _memory_lines(measured: Measurements) -> list[PlotLine]:
    return [over_time(LABELS[name], run_series(measured, by=name), "memory") for name in SELECTORS]


CHANGED_QOS = Experiment(
    name="changed-qos",
    title="A change of requirements in the run",
    setup=f"Plan 2 for 300 s; the QoS requires only delay, and from half-time on only memory. {CHOSEN}",
    points=changed_points,
    measure=measure,
    plots=(
        Plot("changed-qos-memory", "Delay required, then memory", "time (s)", STATISTIC_PLOTS["memory"][0],
             _memory_lines),
    ),
    claims=(
        Claim("other algorithms are chosen", "The administrator may change the QoS in the run, and it takes effect.",
              "above 0", _choice_shift("roulette"), band_from(0.05),
              reading="Ours is the rise of the share of choices that select Chain or MTIQ; a rise below a twentieth "
              "counts as chance.",
              because="The wheel hardly prefers any algorithm, whatever the requirement.",
              others={"highest score": _choice_shift("highest score")}),
        Claim("other algorithms are chosen, predictive", "The same, selected by looking ahead.",
              "above 0", _choice_shift("predictive"), band_from(0.05)),
    ),
)  # fmt: skip
