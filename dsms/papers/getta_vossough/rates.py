"""A window of intermediate results against the rates of the streams: the work of both plans, and the time of t."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from dsms.dataflow import Detour, best_plan, conflict_matrix, translate, work_rate
from dsms.papers.claim import Claim, above, at_least, at_most, below, near
from dsms.papers.experiment import Experiment, Line, Plot, Point, Scale, spread_line
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.timed import finished
from dsms.papers.getta_vossough.workload import THREE, uniform, work
from dsms.papers.measured import Measured

TIMES = {"record": 1.0, "join": 2.0}
WORKLOAD = uniform(THREE, rows=8, values=8, times=TIMES)
PLANS = {"with": translate(THREE, ["rs"]), "without": translate(THREE)}
RATE_T = 0.05  # items of t a unit of time
APART = 100.0  # between the items that fill the windows: nobody waits


def points(scale: Scale) -> Sequence[Point]:
    return [
        {"window": window, "ratio": ratio, "items": scale.of(1200, 300), "seed": seed}
        for seed in scale.numbers()
        for ratio in scale.of((0.0, 0.125, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 3.0), (0.0, 0.25, 0.5, 0.75, 1.25, 3.0))
        for window in PLANS
    ]


def measure(point: Point) -> dict[str, Any]:
    """Items at random times through one of the plans: the work for all items, and the time of those of t."""
    plan, rates = PLANS[point["window"]], {"r": point["ratio"], "s": point["ratio"], "t": 1.0}
    chance, full = Random(point["seed"]), WORKLOAD.before
    names = [name for name, rate in rates.items() for _ in range(round(point["items"] * rate / sum(rates.values())))]
    chance.shuffle(names)
    items = WORKLOAD.items(names, point["seed"])
    run = WORKLOAD.run(plan, items)
    arrivals = [i * APART for i in range(full)]
    for _ in names:
        arrivals.append(arrivals[-1] + chance.expovariate(RATE_T * sum(rates.values())))
    streams = [item.stream for item in items]
    done = finished(plan, run, streams, arrivals, TIMES, conflict_matrix(plan, timestamps=True))
    mine = [i for i in range(full, len(items)) if streams[i] == "t"]
    return {
        "work": float(np.sum(work(WORKLOAD, plan, run)[full:])) / len(names),
        "work_formula": work_rate(plan, WORKLOAD.estimate, rates) / sum(rates.values()),
        "time": float(np.mean([_joined(done[i]) - arrivals[i] for i in mine])),
        "time_formula": float(np.mean([_told(point["window"], since) for since in _since(streams, arrivals, mine)])),
        "stored": float("w_rs" in str(best_plan(THREE, WORKLOAD.estimate, rates)[2])),
    }


def _joined(done: dict[Any, float]) -> float:
    """When the last operation but the recording of results was done."""
    return max(end for operation, end in done.items() if operation.window != "w_out")


def _since(streams: Sequence[str], arrivals: Sequence[float], mine: Sequence[int]) -> list[float]:
    """How long before each of these items the latest of r or s came."""
    return [arrivals[i] - max(arrivals[j] for j in range(i) if streams[j] != "t") for i in mine]


def _told(window: str, since: float) -> float:
    """Equations 1 and 2 for an arrival in a full window, which is two items: what is new and what it drives out."""
    one = Detour.of(WORKLOAD.estimate, PLANS["with"][2], PLANS["without"][2])
    found = WORKLOAD.estimate(PLANS["with"][1].operations[1]).outputs  # of s in w_r
    both = Detour(
        one.record_s, one.record_t, 2 * found * one.record_rs, 2 * one.join_r, 2 * one.join_s, 2 * one.join_rs,
        one.outputs_s,
    )  # fmt: skip
    return both.with_window(since) if window == "with" else both.without_window()


def _saved(found: Measured, figure: str, ratio: float) -> float:
    """With the window over without it."""
    return found.value(figure, window="with", ratio=ratio) / found.value(figure, window="without", ratio=ratio)


def _at(figure: str, place: int) -> Callable[[Measured], float]:
    """The same at the lowest (0) or highest (-1) rates of r and s."""
    return lambda found: _saved(found, figure, found.values("ratio")[place])


def _from(figure: str) -> Callable[[Measured], float]:
    """The ratio of rates up to which the window is the better plan."""

    def found_at(found: Measured) -> float:
        ratios = found.values("ratio")
        return crossover(ratios, [_saved(found, figure, ratio) - 1 for ratio in ratios])

    return found_at


def _off(most: float) -> Callable[[Measured], float]:
    """How far the time with the window is from the equations, at ratios up to one."""

    def farthest(found: Measured) -> float:
        rows = [row.figures for row in found.where(window="with").rows if row.point["ratio"] <= most]
        return float(max(abs(figures["time"] / figures["time_formula"] - 1) for figures in rows))

    return farthest


def _chosen(found: Measured) -> float:
    """At what share of the ratios the plan that is chosen by T_δ and the rates is the one that was less work."""
    right = [
        found.value("stored", ratio=ratio) == (_saved(found, "work", ratio) < 1) for ratio in found.values("ratio")
    ]
    return float(np.mean(right))


def _lines(figure: str) -> Callable[[Measured], list[Line]]:
    def lines(found: Measured) -> list[Line]:
        of = {window: found.where(window=window) for window in PLANS}
        drawn = [spread_line(f"{window} w_rs: executed", of[window], figure, "ratio") for window in PLANS]
        drawn += [spread_line(f"{window} w_rs: formula", of[window], f"{figure}_formula", "ratio") for window in PLANS]
        for how, name in (("executed", figure), ("formula", f"{figure}_formula")):
            where = _from(name)(found)
            xs, ys = of["without"].line(name, "ratio")
            if not np.isnan(where):
                drawn.append(Line(f"crossover, {how}", [where], [float(np.interp(where, xs, ys))]))
        return drawn

    return lines


X = "rate of r and of s, over that of t"
RATES = Experiment(
    name="rates",
    title="An intermediate window against the rates of streams",
    setup=(
        "(r ⋈_b s) ⋈_ac t with and without w_rs, on the same items: all windows hold 8 rows, all attributes have 8 "
        "values, a recorder takes 1 an item and a join 2, 0.05 items of t come a unit of time, those of r and s as "
        "often as the ratio says, in random order and apart (all chosen: the paper has no numbers; from ratio 4 on the "
        "plan with w_rs cannot keep up). Work is all that operations took in hand, per arrival; the time of t is until "
        "its last join, on the scheduling graph with the timestamp rule, "
        "each operation at its own speed. At ratio 0 the windows of r and s were filled before, and so was w_rs."
    ),
    points=points,
    measure=measure,
    plots=(
        Plot("work", "Work of the two plans", X, "work per arrival", _lines("work")),
        Plot("rates", "Time of an item of t in the two plans", X, "time of an item of t until joined", _lines("time")),
    ),
    claims=(
        Claim(
            "low rates",
            "Low rates of r and s against t favour the window w_rs; at rate 0 the join is computed in advance.",
            "less work with w_rs",
            _at("work", 0),
            below(1),
            reading="Work with the window over work without it, at rate 0.",
            others={"time of t instead of work": _at("time", 0)},
        ),
        Claim(
            "high rates",
            "High rates of r and s speak against the window w_rs.",
            "more work with w_rs",
            _at("work", -1),
            above(1),
            reading="Work with the window over work without it, at the highest ratio.",
            others={"time of t instead of work": _at("time", -1)},
        ),
        Claim(
            "crossover of work",
            "Frequencies decide: the window pays while its upkeep is less than it saves on t.",
            "ratio 1 (by hand)",
            _from("work"),
            near(1, 0.15),
            quick=near(1, 0.3),
            reading=(
                "An item of r or s writes 2·1 results at 1 each; one of t saves 2·(2 + 1·2 − 2): equal at ratio 1. The "
                "paper compares only T_t with T'_t, in which rates count no more once nobody waits."
            ),
            others={"formula": _from("work_formula"), "by the time of t": _from("time")},
        ),
        Claim(
            "time at high rates",
            "At high rates d_t comes so soon after d_s that it waits longer for the window than the window saves.",
            "T_t > T'_t",
            _at("time", -1),
            above(1),
            reading="The mean time of items of t with the window over without it, at the highest ratio.",
            others={"equations 1 and 2": _at("time_formula", -1)},
        ),
        Claim(
            "wait",
            "An item of t waits τ_->w_s + τ_⋈w_r + τ_->w_rs − (Δt + τ_->w_t) for the window (equation 2).",
            "T_t, to a tenth",
            _off(3.0),
            at_most(0.1),
            reading="The largest deviation of the mean T_t with the window from the equations, as a share of them.",
            because=(
                "Equation 2 knows one item of s, the last; at higher rates several of r and s are pending, each waits "
                "for the one before it, and some of them meet many. For a single pair it is exact (see waiting)."
            ),
            others={"ratios up to 1/4": _off(0.25), "ratio 0": _off(0.0)},
        ),
        Claim(
            "choice",
            "The frequencies of streams decide on the translation: with another ratio, another plan is best.",
            "always the better plan",
            _chosen,
            near(1, 0),
            quick=at_least(0.8),
            reading="The share of ratios at which the plan of least work by formula was less work as executed.",
        ),
    ),
)
