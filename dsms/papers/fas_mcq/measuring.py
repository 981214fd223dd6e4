"""Runs the test-bed at one point and measures staleness and response; selects and compares measured runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dsms.papers.claim import Figure
from dsms.papers.experiment import PlotLine, Point, Scale, lines_over
from dsms.papers.fas_mcq import recorded_arrivals, testbed
from dsms.papers.fas_mcq.readings import OTHERS, PLAIN, READINGS, find_reading
from dsms.papers.fas_mcq.testbed import Setting
from dsms.papers.measurements import Measurements
from dsms.simulation import simulate

FAS, RB, RR, FCFS = "fas-mcq", "rb-mcq", "rr-query", "fifo"
LEGEND = {FAS: "FAS-MCQ", RB: "RB-MCQ", RR: "RR", FCFS: "FCFS"}
QUICK = 150  # tuples per stream in a quick reproduction
SHORT = 1_000  # tuples per stream in runs that only compare readings
STAND_IN = "onoff"
HIGH = 0.95  # the utilisation for which the paper gives most numbers


def point(
    seed: int,
    tuples: int,
    policy: str,
    utilisation: float = HIGH,
    *,
    bursty: int = 5,
    zipf: float = 0.0,
    equal: bool = False,
    reading: str = PLAIN,
    recorded: str = "",
) -> dict[str, Any]:
    """A run's parameters, always with the same keys, so that figures share equal runs.

    `recorded` names the traces to replay (JSON: paths and digests), or is "onoff" for their synthetic stand-in.
    """
    return {
        "seed": seed,
        "tuples": tuples,
        "policy": policy,
        "utilisation": utilisation,
        "bursty": bursty,
        "zipf": zipf,
        "equal": equal,
        "reading": reading,
        "recorded": recorded,
    }


def size(scale: Scale) -> int:
    """Tuples per stream."""
    return scale.of(testbed.TUPLES, QUICK)


def short(scale: Scale) -> int:
    """Tuples per stream in runs that only compare readings."""
    return scale.of(SHORT, QUICK)


def measure(point: Point) -> dict[str, Any]:
    """Simulate a point: the mean staleness and response time, and the share of time spent on scheduling."""
    reading = find_reading(point["reading"])
    keys = ("seed", "tuples", "utilisation", "bursty", "zipf", "equal")
    setting = Setting(**({key: point[key] for key in keys} | reading.setting))
    if point["recorded"]:
        instants = _instants(point)
        queries = testbed.draw_queries(setting, len(instants))
        streams = recorded_arrivals.arrivals(instants, queries, setting.utilisation)
    else:
        queries = testbed.draw_queries(setting)
        streams = testbed.arrivals(setting, queries)
    run = simulate(testbed.plan(setting, queries, streams), reading.policy(point["policy"]))
    staleness = [query.staleness for query in run.queries.values()]
    latencies = [query.latency_mean for query in run.queries.values() if query.latency_mean is not None]
    return {
        "staleness": run.staleness.mean,
        "weighted": float(np.average(np.array(staleness, dtype=float), weights=queries.users)),
        "response": run.response.mean,
        "by_query": float(np.mean(latencies)) if latencies else None,  # mean response of the queries' means
        "scheduling": run.scheduling / run.elapsed if run.elapsed else 0.0,
    }


def _instants(point: Point) -> list[testbed.Floats]:
    if point["recorded"] == STAND_IN:
        return recorded_arrivals.stand_in(2, point["tuples"], point["seed"])
    return recorded_arrivals.from_files([path for path, _ in json.loads(point["recorded"])], point["tuples"])


# --- selecting and comparing measured runs


def full(measured: Measurements, **conditions: Any) -> Measurements:
    """The rows of the plain reading that have the largest size."""
    rows = measured.where(reading=PLAIN, **conditions)
    return rows.where(tuples=max(rows.values("tuples"), default=0))


def ratio(measured: Measurements, figure: str, policy: str = FAS, to: str = RB, **conditions: Any) -> float:
    """A figure of one policy over that of another."""
    return measured.value(figure, policy=policy, **conditions) / measured.value(figure, policy=to, **conditions)


def as_read(measured: Measurements, name: str, **conditions: Any) -> Measurements:
    """The short runs of a reading."""
    rows = measured.where(reading=name, **conditions)
    return rows.where(tuples=min(rows.values("tuples"), default=0))


def readings_of(figure: Figure, names: Sequence[str] = OTHERS, **conditions: Any) -> dict[str, Figure]:
    """A claim's figure in other readings of the paper, by their description."""

    def read(name: str) -> Figure:
        return lambda measured: figure(as_read(measured, name, **conditions))

    return {READINGS[name].text: read(name) for name in names}


def drawn_over(
    figure: str, parameter: str, by: str, labels: Mapping[Any, str]
) -> Callable[[Measurements], list[PlotLine]]:
    """Make a plot's line function from the largest runs of the plain reading."""
    return lambda measured: lines_over(figure, parameter, by, labels)(full(measured))
