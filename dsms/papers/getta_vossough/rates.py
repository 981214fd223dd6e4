"""Whether a window of intermediate results pays, by the rates of the streams: work of both plans, time of t's items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from dsms.dataflow import WindowTradeoff, best_plan, conflict_matrix, translate, work_rate
from dsms.papers.claim import Claim, band_above, band_below, band_from, band_near, band_up_to
from dsms.papers.experiment import Experiment, Plot, PlotLine, Point, Scale, spread_line
from dsms.papers.getta_vossough.crossover import crossover
from dsms.papers.getta_vossough.timed import finish_times
from dsms.papers.getta_vossough.workload import THREE, uniform, work
from dsms.papers.measurements import Measurements

TIMES = {"record": 1.0, "join": 2.0}
WORKLOAD = uniform(THREE, rows=8, values=8, times=TIMES)
PLANS = {"with": translate(THREE, ["rs"]), "without": translate(THREE)}
RATE_T = 0.05  # items of t per time unit
FILL_GAP = 100.0  # time between the items that fill the windows, long enough that none waits


def points(scale: Scale) -> Sequence[Point]:
    return [
        {"window": window, "ratio": ratio, "items": scale.of(1200, 300), "seed": seed}
        for seed in scale.numbers()
        for ratio in scale.of((0.0, 0.125, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 3.0), (0.0, 0.25, 0.5, 0.75, 1.25, 3.0))
        for window in PLANS
    ]


def measure(point: Point) -> dict[str, Any]:
    """Run items at random times through one plan: the work per item, and the mean time of the items of t."""
    plan, rates = PLANS[point["window"]], {"r": point["ratio"], "s": point["ratio"], "t": 1.0}
    random, full = Random(point["seed"]), WORKLOAD.before
    names = [name for name, rate in rates.items() for _ in range(round(point["items"] * rate / sum(rates.values())))]
    random.shuffle(names)
    items = WORKLOAD.items(names, point["seed"])
    run = WORKLOAD.run(plan, items)
    arrivals = [i * FILL_GAP for i in range(full)]
    for _ in names:
        arrivals.append(arrivals[-1] + random.expovariate(RATE_T * sum(rates.values())))
    streams = [item.stream for item in items]
    done = finish_times(plan, run, streams, arrivals, TIMES, conflict_matrix(plan, timestamps=True))
    of_t = [i for i in range(full, len(items)) if streams[i] == "t"]
    return {
        "work": float(np.sum(work(WORKLOAD, plan, run)[full:])) / len(names),
        "work_formula": work_rate(plan, WORKLOAD.estimate, rates) / sum(rates.values()),
        "time": float(np.mean([_join_end(done[i]) - arrivals[i] for i in of_t])),
        "time_formula": float(np.mean([_predict(point["window"], gap) for gap in _gaps(streams, arrivals, of_t)])),
        "stored": float("w_rs" in str(best_plan(THREE, WORKLOAD.estimate, rates)[2])),
    }


def _join_end(done: dict[Any, float]) -> float:
    """When an item's last join was done, before its results are recorded."""
    return max(end for operation, end in done.items() if operation.window != "w_out")


def _gaps(streams: Sequence[str], arrivals: Sequence[float], of_t: Sequence[int]) -> list[float]:
    """The time from the latest arrival of r or s to each of these items of t."""
    return [arrivals[i] - max(arrivals[j] for j in range(i) if streams[j] != "t") for i in of_t]


def _predict(window: str, gap: float) -> float:
    """Equations 1 and 2 for an arrival in a full window, which is two items: the new row and the evicted one."""
    one = WindowTradeoff.of(WORKLOAD.estimate, PLANS["with"][2], PLANS["without"][2])
    outputs = WORKLOAD.estimate(PLANS["with"][1].operations[1]).outputs  # partners of an item of s in w_r
    both = WindowTradeoff(
        one.record_s, one.record_t, 2 * outputs * one.record_rs, 2 * one.join_r, 2 * one.join_s, 2 * one.join_rs,
        one.outputs_s,
    )  # fmt: skip
    return both.with_window(gap) if window == "with" else both.without_window()


def _window_over_none(measured: Measurements, figure: str, ratio: float) -> float:
    """A figure of the plan with the window over that without it."""
    return measured.value(figure, window="with", ratio=ratio) / measured.value(figure, window="without", ratio=ratio)


def _at(figure: str, place: int) -> Callable[[Measurements], float]:
    """The plan with the window over that without, at the lowest (0) or highest (-1) rates of r and s."""
    return lambda measured: _window_over_none(measured, figure, measured.values("ratio")[place])


def _pays_up_to(figure: str) -> Callable[[Measurements], float]:
    """The ratio of rates up to which the plan with the window is better."""

    def equal_at(measured: Measurements) -> float:
        ratios = measured.values("ratio")
        return crossover(ratios, [_window_over_none(measured, figure, ratio) - 1 for ratio in ratios])

    return equal_at


def _deviation(max_ratio: float) -> Callable[[Measurements], float]:
    """The largest relative deviation of the time with the window from the equations, at ratios up to `max_ratio`."""

    def farthest(measured: Measurements) -> float:
        rows = [row.figures for row in measured.where(window="with").rows if row.point["ratio"] <= max_ratio]
        return float(max(abs(figures["time"] / figures["time_formula"] - 1) for figures in rows))

    return farthest


def _choice_agreement(measured: Measurements) -> float:
    """The share of ratios at which the plan chosen by T_δ and the rates was also less work as executed."""
    right = [
        measured.value("stored", ratio=ratio) == (_window_over_none(measured, "work", ratio) < 1)
        for ratio in measured.values("ratio")
    ]
    return float(np.mean(right))


def _lines(figure: str) -> Callable[[Measurements], list[PlotLine]]:
    def lines(measured: Measurements) -> list[PlotLine]:
        runs = {window: measured.where(window=window) for window in PLANS}
        curves = [spread_line(f"{window} w_rs: executed", runs[window], figure, "ratio") for window in PLANS]
        curves += [
            spread_line(f"{window} w_rs: formula", runs[window], f"{figure}_formula", "ratio") for window in PLANS
        ]
        for how, name in (("executed", figure), ("formula", f"{figure}_formula")):
            where = _pays_up_to(name)(measured)
            xs, ys = runs["without"].line(name, "ratio")
            if not np.isnan(where):
                curves.append(PlotLine(f"crossover, {how}", [where], [float(np.interp(where, xs, ys))]))
        return curves

    return lines


X = "rate of r and of s, over that of t"
RATES = Experiment(
    name="rates",
    title="An intermediate window against the rates of streams",
    setup=(
        "(r ⋈_b s) ⋈_ac t with and without w_rs, on the same items. All windows hold 8 rows, all attributes have 8 "
        "values, a recorder takes 1 per item and a join 2. Per time unit 0.05 items of t arrive, and items of r and s "
        "by the ratio, in random order with exponential gaps (all chosen: the paper has no numbers; from ratio 4 on "
        "the plan with w_rs cannot keep up). Work is the time of all operations, per arrival. The time of t ends with "
        "its last join, on the scheduling graph with the timestamp rule, each operation on its own processor. At ratio "
        "0 the windows of r and s are filled before, and so is w_rs."
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
            band_below(1),
            reading="Ours: work with the window over work without it, at rate 0.",
            others={"time of t instead of work": _at("time", 0)},
        ),
        Claim(
            "high rates",
            "High rates of r and s speak against the window w_rs.",
            "more work with w_rs",
            _at("work", -1),
            band_above(1),
            reading="Ours: work with the window over work without it, at the highest ratio.",
            others={"time of t instead of work": _at("time", -1)},
        ),
        Claim(
            "crossover of work",
            "Frequencies decide: the window pays while maintaining it costs less than it saves on t.",
            "ratio 1 (by hand)",
            _pays_up_to("work"),
            band_near(1, 0.15),
            quick=band_near(1, 0.3),
            reading=(
                "An item of r or s writes 2·1 results at 1 each; one of t saves 2·(2 + 1·2 − 2): equal at ratio 1. The "
                "paper compares only T_t with T'_t, which do not depend on rates once no item waits."
            ),
            others={"formula": _pays_up_to("work_formula"), "by the time of t": _pays_up_to("time")},
        ),
        Claim(
            "time at high rates",
            "At high rates d_t arrives soon after d_s, and waits longer for the window than the window saves.",
            "T_t > T'_t",
            _at("time", -1),
            band_above(1),
            reading="Ours: the mean time of items of t with the window over that without, at the highest ratio.",
            others={"equations 1 and 2": _at("time_formula", -1)},
        ),
        Claim(
            "wait",
            "An item of t waits τ_->w_s + τ_⋈w_r + τ_->w_rs − (Δt + τ_->w_t) for the window (equation 2).",
            "T_t, to a tenth",
            _deviation(3.0),
            band_up_to(0.1),
            reading="Ours: the largest relative deviation of the mean T_t with the window from the equations.",
            because=(
                "Equation 2 covers only the last item of s. At higher rates several items of r and s are pending, each "
                "waits for the one before it, and some have many partners. For a single pair it is exact (see waiting)."
            ),
            others={"ratios up to 1/4": _deviation(0.25), "ratio 0": _deviation(0.0)},
        ),
        Claim(
            "choice",
            "The frequencies of streams decide on the translation: with another ratio, another plan is best.",
            "always the better plan",
            _choice_agreement,
            band_near(1, 0),
            quick=band_from(0.8),
            reading="Ours: the share of ratios at which the plan of least work by formula was less work as executed.",
        ),
    ),
)
