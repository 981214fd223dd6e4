"""Figure 6.3: one statistic is required, and the selector is compared with the best single algorithm for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dsms.papers.claim import Claim, at_least, at_most
from dsms.papers.experiment import Experiment, Line, Plot, Scale
from dsms.papers.measured import Measured
from dsms.papers.raindrop.plans import CHOSEN
from dsms.papers.raindrop.runs import LABELS, SELECTORS, SINGLE, VARIANTS, measure, point
from dsms.papers.raindrop.scores import Figure, best_single, course, mean, singles
from dsms.papers.raindrop.single import TALE, over_time

QOS = {"memory": "queued", "delay": "delay", "rate": "output_rate"}
FIGURES = {"short": "in the run of 30 s", "long": "in a run of 300 s", "filters": "on plan 1"}


def _wanted(measured: Measured, place: str) -> dict[str, Any]:
    """The parameters of the runs meant: the thesis's 30 s, longer ones, or those on the other plan."""
    lengths = measured.values("seconds")
    return {"plan": 1 if place == "filters" else 2, "seconds": lengths[-1 if place == "long" else 0]}


def points(scale: Scale) -> list[dict[str, Any]]:
    """Every selector for every requirement, with the four alone: 30 s, as in the thesis, and longer."""
    found = []
    for seed in scale.numbers():
        for plan, seconds in ((2, 30), (2, scale.of(300, 40)), (1, 30)):
            found += [point(name, seconds, seed, plan) for name in SINGLE]
            for qos in QOS:
                names = [*SELECTORS, *VARIANTS] if plan == 2 else ["roulette", "highest score"]
                if scale.quick and seconds > 30:
                    names.remove("predictive")  # it looks ahead at length
                found += [point(name, seconds, seed, plan, f"{qos}=1") for name in names]
    return found


def _drawn(qos: str) -> Callable[[Measured], list[Line]]:
    def lines(measured: Measured) -> list[Line]:
        where = _wanted(measured, "short")
        alone = {LABELS[name]: run for name, run in singles(measured, **where).items()}
        chosen = {LABELS[name]: course(measured, by=name, qos=f"{qos}=1", **where) for name in SELECTORS}
        return [over_time(label, run, qos) for label, run in {**alone, **chosen}.items()]

    return lines


def _scored(measured: Measured) -> list[Line]:
    """What the selector of the thesis thought of each in the mean: bars by requirement."""
    where, places = _wanted(measured, "long"), [float(place) for place in range(len(QOS))]
    return [
        Line(
            label,
            places,
            [measured.value(f"score {name}", by="roulette", qos=f"{qos}=1", **where) for qos in QOS],
        )
        for name, label in SINGLE.items()
    ]


def _against(qos: str, by: str, place: str) -> Figure:
    """The selector's mean by that of the best single algorithm; above 1 is better for a rate, below for the rest."""

    def ratio(measured: Measured) -> float:
        where, statistic = _wanted(measured, place), QOS[qos]
        alone = [run.means()[statistic] for run in singles(measured, **where).values()]
        best = max(alone) if qos == "rate" else min(alone)
        return course(measured, by=by, qos=f"{qos}=1", **where).means()[statistic] / best

    return ratio


def _favoured(qos: str, by: str, place: str) -> Figure:
    """How often the best single algorithm was chosen, by how often the next most chosen one was."""

    def favoured(measured: Measured) -> float:
        where = _wanted(measured, place)
        best = best_single(measured, f"{qos}=1", **where)
        picks = {name: measured.value(f"picked {name}", by=by, qos=f"{qos}=1", **where) for name in SINGLE}
        return picks.pop(best) / max(max(picks.values()), 1.0)

    return favoured


def _tuned(qos: str, other: str, by: str, place: str) -> Figure:
    """The statistic of the run tuned for it by that of the run tuned for another."""

    def tuned(measured: Measured) -> float:
        where, statistic = _wanted(measured, place), QOS[qos]
        found = [mean(statistic, by=by, qos=f"{each}=1", **where)(measured) for each in (qos, other)]
        return found[0] / found[1]

    return tuned


def _others(figure: Callable[[str, str], Figure]) -> dict[str, Figure]:
    """Other ways to select, for 30 s; and the thesis's for longer, and on the other plan."""
    found = {f"{name}, {FIGURES['short']}": figure(name, "short") for name in ("highest score", *VARIANTS)}
    for name in ("roulette", "highest score"):
        found |= {f"{name}, {FIGURES[place]}": figure(name, place) for place in ("long", "filters")}
    return found


def _claims(by: str) -> list[Claim]:
    """What the thesis says of its selector, asked of this one."""
    whose, mark = ("", "") if by == "roulette" else (f" (selected by: {by})", f", {by}")

    def claim(name: str, text: str, paper: str, figure: Callable[[str, str], Figure], **rest: Any) -> Claim:
        others = _others(figure) if by == "roulette" else {}
        return Claim(f"{name}{mark}", f"{text}{whose}.", paper, figure(by, "short"), others=others, **rest)

    return [
        *(
            claim(qos, f"With {qos} alone required, adaptive is about as good as the best or better", "about 1",
                  partial(_against, qos), band=at_least(0.9) if qos == "rate" else at_most(1.1),
                  reading=f"Ours is its mean {qos} by that of the best single algorithm; a tenth is called about.",
                  because=MIXED)
            for qos in QOS
        ),
        *(
            claim(f"{qos}, chosen", f"With {qos} alone required, the best algorithm is chosen most often", "above 1",
                  partial(_favoured, qos), band=at_least(1.0001),
                  reading="Ours is how often it was chosen by how often the next was.", because=FLAT)
            for qos in ("memory", "delay")
        ),
        *(
            claim(f"{qos}, tuned", f"Tuned for {qos} it does better in {qos} than tuned for {other}", "below 1",
                  partial(_tuned, qos, other), band=at_most(0.98), direction=at_most(0.9999), because=FLAT,
                  reading=f"Ours is the {qos} of the one run by that of the other; 2 % count as better, as they do to "
                  "the selector.")
            for qos, other in (("memory", "delay"), ("delay", "memory"))
        ),
    ]  # fmt: skip


MIXED = (
    "The run is a mixture of all four: on the wheel everyone has about a quarter, as mean scores are much alike, and a "
    "queue that one leaves behind is the next one's memory and delay (figure 6.3-scores)."
)
FLAT = (
    "Mean scores are much alike and do not follow how good the algorithms are alone (figure 6.3-scores): what is "
    "measured under one in 2 s is mostly what its predecessors left and what the streams do just then, and a mean is "
    "divided by the spread of all history, which a burst makes wide."
)

ONE_QOS = Experiment(
    name="one-qos",
    title="One requirement at a time",
    setup=(
        f"Plan 2 for 30 s after 10 s of warm-up and exploration. {CHOSEN} Evaluation every 2 s, statistics every 1 s, "
        "weight of old data 0.875, decay 0.9 an evaluation (chosen). Other readings: the highest score instead of the "
        "wheel, scores that fade to 0, other decays, algorithms kept for 10 s, 300 s, plan 1."
    ),
    points=points,
    measure=measure,
    plots=(
        *(Plot(f"figure-6.3-{qos}", f"Only {qos} required", "time (s)", TALE[qos][0], _drawn(qos)) for qos in QOS),
        Plot("figure-6.3-scores", "Mean scores, on the wheel, in the longer run", "required", "score (equation 5.2)",
             _scored, bars=True, ticks=tuple(QOS)),
    ),
    claims=tuple(_claims("roulette") + _claims("predictive")),
)  # fmt: skip
