"""Figure 6.3: one statistic is required, and the selector is compared with the best single algorithm for it."""

from __future__ import annotations

from collections.abc import Callable
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
        for plan, seconds in ((2, 30), (2, scale.of(300, 60)), (1, 30)):
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
        picks = {
            name: measured.value(f"picked {name}", by=by, qos=f"{qos}=1", **where) for name in SINGLE
        }
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
    others = _others if by == "roulette" else lambda figure: {}
    found = []
    for qos in QOS:
        found.append(
            Claim(f"{qos}{mark}", f"With {qos} alone required, adaptive is about as good as the best or better{whose}.",
                  "about 1", _against(qos, by, "short"), at_least(0.9) if qos == "rate" else at_most(1.1),
                  reading=f"Ours is its mean {qos} by that of the best single algorithm; a tenth is called about.",
                  because=MIXED, others=others(lambda name, place, qos=qos: _against(qos, name, place)))
        )
    for qos in ("memory", "delay"):
        found.append(
            Claim(f"{qos}, chosen{mark}", f"With {qos} alone required, the best algorithm is chosen most often{whose}.",
                  "above 1", _favoured(qos, by, "short"), at_least(1.0001),
                  reading="Ours is how often it was chosen by how often the next was.",
                  because=FLAT, others=others(lambda name, place, qos=qos: _favoured(qos, name, place)))
        )
    for qos, other in (("memory", "delay"), ("delay", "memory")):
        found.append(
            Claim(f"{qos}, tuned{mark}", f"Tuned for {qos} it does better in {qos} than tuned for {other}{whose}.",
                  "below 1", _tuned(qos, other, by, "short"), at_most(0.9999),
                  because=FLAT, others=others(lambda name, place, qos=qos, other=other: _tuned(qos, other, name, place)))
        )
    return found


MIXED = (
    "The wheel gives every algorithm nearly the same chance, as all scores lie close to 0.5, so the run is a mixture of "
    "all four; and a queue that one leaves behind is the next one's memory and delay."
)
FLAT = (
    "Scores differ by some hundredths: means are divided by the spread of all history, which a burst makes wide; and "
    "what is measured under an algorithm is mostly what its predecessors left."
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
    plots=tuple(
        Plot(f"figure-6.3-{qos}", f"Only {qos} required", "time (s)", TALE[qos][0], _drawn(qos)) for qos in QOS
    ),
    claims=tuple(_claims("roulette") + _claims("predictive")),
)  # fmt: skip
