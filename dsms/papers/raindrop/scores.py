"""Compares runs by their mean statistics, and scores how well each serves a QoS (equations 5.1 and 5.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dsms.arrivals import Floats
from dsms.config.qos import Qos, score_qos, z_score
from dsms.papers.measurements import Measurements
from dsms.papers.raindrop.runs import SINGLE

Figure = Callable[[Measurements], float]


class RunSeries(NamedTuple):
    """The statistics of one run, second by second."""

    queued: Floats
    results: Floats
    delays: Floats  # sum over the results of the second

    @property
    def delay(self) -> Floats:
        """The mean delay of each second; NaN where there was no result."""
        return _mean(self.delays, self.results)

    @property
    def delay_so_far(self) -> Floats:
        """The mean delay since the beginning; NaN before the first result."""
        return _mean(np.cumsum(self.delays), np.cumsum(self.results))

    def means(self) -> dict[str, float]:
        """The means over the whole run, by the statistics' names in a QoS."""
        results = float(self.results.sum())
        return {
            "queued": float(self.queued.mean()),
            "delay": float(self.delays.sum()) / results if results else math.nan,
            "output_rate": results / len(self.results),
        }

    def seconds(self) -> dict[str, Floats]:
        """The statistics of each second, by their names in a QoS."""
        return {"queued": self.queued, "delay": self.delay, "output_rate": self.results}


def _mean(total: Floats, count: Floats) -> Floats:
    means = np.full(len(count), math.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def run_series(measured: Measurements, **conditions: object) -> RunSeries:
    """The statistics of the run with these parameters."""
    return RunSeries(*(np.array(measured.series(name, **conditions)) for name in ("memory", "results", "delays")))


def mean(statistic: str, **conditions: object) -> Figure:
    """A run's mean of a statistic."""
    return lambda measured: run_series(measured, **conditions).means()[statistic]


def singles(measured: Measurements, **conditions: object) -> dict[str, RunSeries]:
    """The runs of the single algorithms with these parameters."""
    return {name: run_series(measured, by=name, **conditions) for name in SINGLE}


def scores(runs: Sequence[RunSeries], qos: Qos) -> list[float]:
    """Equation 5.2 of each run: its means against the history of all runs together."""
    z_scores: list[dict[str, float]] = [{} for _ in runs]
    for statistic in (requirement.statistic for requirement in qos.requirements):
        seen = np.concatenate([run.seconds()[statistic] for run in runs])
        history = (float(np.nanmean(seen)), float(np.nanmin(seen)), float(np.nanmax(seen)))
        for of_run, run in zip(z_scores, runs, strict=True):
            of_run[statistic] = z_score(run.means()[statistic], history)
    return [score_qos(qos, of_run) for of_run in z_scores]


def ratios(runs: Sequence[RunSeries], qos: Qos) -> list[float]:
    """Another score: the inverse of the weighted ratios to the best in each statistic; 1 is the best in all."""
    total = np.zeros(len(runs))
    for requirement in qos.requirements:
        means = np.array([run.means()[requirement.statistic] for run in runs])
        costs = 1 / means if requirement.goal == "maximise" else means
        total += requirement.weight * costs / costs.min()
    return [1 / cost for cost in total.tolist()]


def lead(
    by: str, qos: str, rate: Callable[[Sequence[RunSeries], Qos], list[float]] = scores, **conditions: object
) -> Figure:
    """A selector's score on a scale where the mean single algorithm is 0 and the best one 1."""

    def position(measured: Measurements) -> float:
        alone = list(singles(measured, **conditions).values())
        *others, score = rate([*alone, run_series(measured, by=by, qos=qos, **conditions)], Qos.of(qos))
        middle, best = sum(others) / len(others), max(others)
        return (score - middle) / (best - middle) if best > middle else math.nan

    return position


def best_single(measured: Measurements, qos: str, **conditions: object) -> str:
    """The single algorithm that serves a QoS best."""
    alone = singles(measured, **conditions)
    return max(zip(scores(list(alone.values()), Qos.of(qos)), alone, strict=True))[1]
