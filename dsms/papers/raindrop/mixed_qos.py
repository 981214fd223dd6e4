"""Figures 6.4 to 6.7: several requirements, weighed; and requirements that change while the plan runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dsms.papers.claim import Claim, at_least
from dsms.papers.experiment import Experiment, Line, Plot, Scale
from dsms.papers.measured import Measured
from dsms.papers.raindrop.plans import CHOSEN, READINGS
from dsms.papers.raindrop.runs import LABELS, SELECTORS, SINGLE, VARIANTS, measure, point
from dsms.papers.raindrop.scores import Course, Figure, course, lead, ratios, scores, singles
from dsms.papers.raindrop.single import TALE, over_time
from dsms.qos import Qos

WEIGHTS = {
    "6.4": ("delay=0.7,rate=0.3", "70 % delay, 30 % output rate"),
    "6.5": ("delay=0.3,rate=0.7", "30 % delay, 70 % output rate"),
    "6.6": ("delay=0.5,rate=0.5", "50 % delay, 50 % output rate"),
    "6.7": ("memory=0.33,delay=0.33,rate=0.34", "memory, delay and output rate alike"),
}
STEP = 5  # seconds between two places at which a score is drawn


def points(scale: Scale) -> list[dict[str, Any]]:
    """The four alone, and every selector for every mixture, by every reading."""
    seconds, found = scale.of(300, 30), []
    for seed in scale.numbers():
        for reading in READINGS:
            names = [*SELECTORS, *VARIANTS] if reading == "plain" else ["roulette", "highest score"]
            found += [point(name, seconds, seed, reading=reading) for name in SINGLE]
            found += [point(name, seconds, seed, qos=q, reading=reading) for q, _ in WEIGHTS.values() for name in names]
    return found


def _compared(measured: Measured, qos: str) -> dict[str, Course]:
    chosen = {name: course(measured, by=name, qos=qos, reading="plain") for name in SELECTORS}
    return {**singles(measured, reading="plain"), **chosen}


def _scored(qos: str) -> Callable[[Measured], list[Line]]:
    """Scores of what has been seen so far."""

    def lines(measured: Measured) -> list[Line]:
        runs = _compared(measured, qos)
        length = len(next(iter(runs.values())).queued)
        places = list(range(STEP, length + 1, STEP))
        upto = [[Course(*(column[:place] for column in run)) for run in runs.values()] for place in places]
        found = np.array([scores(each, Qos.of(qos)) for each in upto])
        xs = [float(place) for place in places]
        return [Line(LABELS[name], xs, found[:, i].tolist()) for i, name in enumerate(runs)]

    return lines


def _drawn(qos: str, statistic: str) -> Callable[[Measured], list[Line]]:
    return lambda measured: [over_time(LABELS[name], run, statistic) for name, run in _compared(measured, qos).items()]


def _plots(figure: str, qos: str, title: str) -> list[Plot]:
    parts = [part.partition("=")[0] for part in qos.split(",")]
    return [
        Plot(f"figure-{figure}", title, "time (s)", "score so far (equation 5.2)", _scored(qos)),
        *(
            Plot(f"figure-{figure}-{name}", f"{title}: {name}", "time (s)", TALE[name][0], _drawn(qos, name))
            for name in parts
        ),
    ]


def _others(qos: str) -> dict[str, Figure]:
    found = {name: lead(name, qos, reading="plain") for name in ("highest score", *VARIANTS)}
    for reading in READINGS:
        if reading != "plain":
            found |= {f"{name}, {reading}": lead(name, qos, reading=reading) for name in ("roulette", "highest score")}
    return {**found, "judged by ratios to the best": lead("roulette", qos, ratios, reading="plain")}


def _claims(figure: str, qos: str, title: str) -> list[Claim]:
    reading = (
        "Ours is 0 where its score is that of the mean single algorithm, 1 where it is that of the best of them; "
        "nearer to the best is the direction."
    )
    return [
        Claim(f"figure {figure}", f"{title}: adaptive leads.", "1 or more", lead("roulette", qos, reading="plain"),
              at_least(0.95), at_least(0.5), reading=reading, because=WHEEL, others=_others(qos)),
        Claim(f"figure {figure}, predictive", f"{title}: adaptive leads (selected by looking ahead).", "1 or more",
              lead("predictive", qos, reading="plain"), at_least(0.95), at_least(0.5), reading=reading,
              because="It looks ahead until queues are drained, where output rates hardly differ, while what is left "
              "at the end of the run makes FIFO's the highest; by memory and delay alone RR is expected to be as good.",
              others={"judged by ratios to the best": lead("predictive", qos, ratios, reading="plain")}),
    ]  # fmt: skip


WHEEL = (
    "One of the four is best for the mixture all the time, and the wheel keeps turning to the others; what they leave "
    "in the queues is charged to their successors, so that scores do not tell well who is to be preferred (figure "
    "6.3-scores). The highest score instead of the wheel does better by some readings and seeds and worse by others."
)

MIXED_QOS = Experiment(
    name="mixed-qos",
    title="Several requirements, weighed",
    setup=(
        f"Plan 2 for 300 s after 10 s of warm-up and exploration. {CHOSEN} Evaluation every 2 s, statistics every 1 s, "
        "weight of old data 0.875, decay 0.9 an evaluation (chosen). The score of a run is equation 5.2 of its means "
        "against all the runs compared. Other readings: as in figure 6.3, one tuple a turn, start-up costs, overload."
    ),
    points=points,
    measure=measure,
    plots=tuple(plot for figure, weighed in WEIGHTS.items() for plot in _plots(figure, *weighed)),
    claims=tuple(claim for figure, weighed in WEIGHTS.items() for claim in _claims(figure, *weighed)),
)  # fmt: skip


def changed_points(scale: Scale) -> list[dict[str, Any]]:
    """Delay is required at first, memory from half-time on."""
    seconds = scale.of(300, 40)
    return [
        point(name, seconds, seed, qos="delay=1", then="memory=1")
        for seed in scale.numbers()
        for name in SELECTORS
    ]  # fmt: skip


def _shifted(by: str) -> Figure:
    """How much more of the choices went to Chain and MTIQ, which hold least, after the change than before."""

    def shifted(measured: Measured) -> float:
        mine = measured.where(by=by)
        late = {name: mine.value(f"picked late {name}") for name in SINGLE}
        early = {name: mine.value(f"picked {name}") - late[name] for name in SINGLE}
        shares = [(c["chain"] + c["mtiq"]) / max(sum(c.values()), 1.0) for c in (late, early)]
        return shares[0] - shares[1]

    return shifted


def _memory_lines(measured: Measured) -> list[Line]:
    return [over_time(LABELS[name], course(measured, by=name), "memory") for name in SELECTORS]


CHANGED_QOS = Experiment(
    name="changed-qos",
    title="Another requirement while the plan runs",
    setup=f"Plan 2 for 300 s; only delay is required, and from half-time on only memory. {CHOSEN}",
    points=changed_points,
    measure=measure,
    plots=(Plot("changed-qos-memory", "Delay required, then memory", "time (s)", TALE["memory"][0], _memory_lines),),
    claims=(
        Claim("other algorithms are chosen", "The administrator may change the QoS while running; it then holds.",
              "above 0", _shifted("roulette"), at_least(0.05),
              reading="Ours is by how much the share of choices that fall on Chain and MTIQ rises; less than a "
              "twentieth is called chance.",
              because="The wheel hardly prefers anybody, whatever is required.",
              others={"highest score": _shifted("highest score")}),
        Claim("other algorithms are chosen, predictive", "The same, selected by looking ahead.",
              "above 0", _shifted("predictive"), at_least(0.05)),
    ),
)  # fmt: skip
