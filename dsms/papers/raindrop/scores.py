"""Runs compared: their mean statistics, and how each serves a QoS by equations 5.1 and 5.2."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dsms.arrivals import Floats
from dsms.papers.measured import Measured
from dsms.papers.raindrop.runs import SINGLE
from dsms.qos import Qos, score, z

Figure = Callable[[Measured], float]


class Course(NamedTuple):
    """One run, second by second."""

    queued: Floats
    results: Floats
    delays: Floats  # of all results of the second together

    @property
    def delay(self) -> Floats:
        """The mean of each second; NaN where nothing came out."""
        return _mean(self.delays, self.results)

    @property
    def delay_so_far(self) -> Floats:
        """The mean since the beginning; NaN until something has come out."""
        return _mean(np.cumsum(self.delays), np.cumsum(self.results))

    def means(self) -> dict[str, float]:
        """Over the whole run, by the names that a QoS has for them."""
        results = float(self.results.sum())
        return {
            "queued": float(self.queued.mean()),
            "delay": float(self.delays.sum()) / results if results else math.nan,
            "output_rate": results / len(self.results),
        }

    def seconds(self) -> dict[str, Floats]:
        return {"queued": self.queued, "delay": self.delay, "output_rate": self.results}


def _mean(total: Floats, count: Floats) -> Floats:
    found = np.full(len(count), math.nan)
    np.divide(total, count, out=found, where=count > 0)
    return found


def course(measured: Measured, **wanted: object) -> Course:
    """Of the one run with these parameters."""
    return Course(*(np.array(measured.series(name, **wanted)) for name in ("memory", "results", "delays")))


def mean(statistic: str, **wanted: object) -> Figure:
    """A run's mean of a statistic."""
    return lambda measured: course(measured, **wanted).means()[statistic]


def singles(measured: Measured, **wanted: object) -> dict[str, Course]:
    """The single algorithms in the same circumstances."""
    return {name: course(measured, by=name, **wanted) for name in SINGLE}


def scores(runs: Sequence[Course], qos: Qos) -> list[float]:
    """Equation 5.2 of each, its mean against the history that all of them make together."""
    found: list[dict[str, float]] = [{} for _ in runs]
    for statistic in (requirement.statistic for requirement in qos.requirements):
        seen = np.concatenate([run.seconds()[statistic] for run in runs])
        history = (float(np.nanmean(seen)), float(np.nanmin(seen)), float(np.nanmax(seen)))
        for mine, run in zip(found, runs, strict=True):
            mine[statistic] = z(run.means()[statistic], history)
    return [score(qos, mine) for mine in found]


def ratios(runs: Sequence[Course], qos: Qos) -> list[float]:
    """How little worse each is than the best in every statistic, by their weights: 1 is the best in all."""
    total = np.zeros(len(runs))
    for requirement in qos.requirements:
        means = np.array([run.means()[requirement.statistic] for run in runs])
        costs = 1 / means if requirement.goal == "maximise" else means
        total += requirement.weight * costs / costs.min()
    return [1 / cost for cost in total.tolist()]


def lead(by: str, qos: str, rate: Callable[[Sequence[Course], Qos], list[float]] = scores, **wanted: object) -> Figure:
    """Where a selector's score lies: 0 is that of the mean single algorithm, 1 that of the best of them."""

    def led(measured: Measured) -> float:
        alone = list(singles(measured, **wanted).values())
        *others, mine = rate([*alone, course(measured, by=by, qos=qos, **wanted)], Qos.of(qos))
        middle, best = sum(others) / len(others), max(others)
        return (mine - middle) / (best - middle) if best > middle else math.nan

    return led


def best_single(measured: Measured, qos: str, **wanted: object) -> str:
    """The single algorithm that serves a QoS best."""
    alone = singles(measured, **wanted)
    return max(zip(scores(list(alone.values()), Qos.of(qos)), alone, strict=True))[1]
