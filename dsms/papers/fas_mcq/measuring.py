"""One run of the test-bed: which parameters it has, and what is measured of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dsms.papers.claim import Figure
from dsms.papers.experiment import Line, Point, Scale, over
from dsms.papers.fas_mcq import recorded, testbed
from dsms.papers.fas_mcq.readings import OTHERS, PLAIN, READINGS, reading
from dsms.papers.fas_mcq.testbed import Setting
from dsms.papers.measured import Measured
from dsms.simulate import simulate

FAS, RB, RR, FCFS = "fas-mcq", "rb-mcq", "rr-query", "fifo"
LEGEND = {FAS: "FAS-MCQ", RB: "RB-MCQ", RR: "RR", FCFS: "FCFS"}
QUICK = 150  # tuples a stream
SHORT = 1_000  # of runs that only compare readings
STAND_IN = "onoff"
HIGH = 0.95  # the utilisation of which the paper says most


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
    """A run's parameters: always the same keys, so that figures share the runs they have in common.

    `recorded` are the traces whose instants are used (JSON: paths and digests), or "onoff" for what stands in for them.
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
    """Tuples a stream."""
    return scale.of(testbed.TUPLES, QUICK)


def short(scale: Scale) -> int:
    """The same where readings are compared."""
    return scale.of(SHORT, QUICK)


def measure(point: Point) -> dict[str, Any]:
    """Run it."""
    way = reading(point["reading"])
    keys = ("seed", "tuples", "utilisation", "bursty", "zipf", "equal")
    setting = Setting(**({key: point[key] for key in keys} | way.setting))
    if point["recorded"]:
        instants = _instants(point)
        queries = testbed.drawn(setting, len(instants))
        streams = recorded.arrivals(instants, queries, setting.utilisation)
    else:
        queries = testbed.drawn(setting)
        streams = testbed.arrivals(setting, queries)
    run = simulate(testbed.plan(setting, queries, streams), way.policy(point["policy"]))
    stale = [query.staleness for query in run.queries.values()]
    delays = [query.latency_mean for query in run.queries.values() if query.latency_mean is not None]
    return {
        "staleness": run.staleness.mean,
        "weighted": float(np.average(np.array(stale, dtype=float), weights=queries.users)),
        "response": run.response.mean,
        "by_query": float(np.mean(delays)) if delays else None,  # response, every query counting the same
        "scheduling": run.scheduling / run.elapsed if run.elapsed else 0.0,
    }


def _instants(point: Point) -> list[testbed.Floats]:
    if point["recorded"] == STAND_IN:
        return recorded.stand_in(2, point["tuples"], point["seed"])
    return recorded.from_files([path for path, _ in json.loads(point["recorded"])], point["tuples"])


# --- what claims ask


def full(measured: Measured, **wanted: Any) -> Measured:
    """Of the plain reading, the rows of the largest size."""
    mine = measured.where(reading=PLAIN, **wanted)
    return mine.where(tuples=max(mine.values("tuples"), default=0))


def ratio(measured: Measured, figure: str, policy: str = FAS, to: str = RB, **wanted: Any) -> float:
    """A figure of one policy over that of another."""
    return measured.value(figure, policy=policy, **wanted) / measured.value(figure, policy=to, **wanted)


def as_read(measured: Measured, name: str, **wanted: Any) -> Measured:
    """The short runs of a reading."""
    mine = measured.where(reading=name, **wanted)
    return mine.where(tuples=min(mine.values("tuples"), default=0))


def readings_of(figure: Figure, names: Sequence[str] = OTHERS, **wanted: Any) -> dict[str, Figure]:
    """What a claim's figure is in other readings, by what these say."""

    def read(name: str) -> Figure:
        return lambda measured: figure(as_read(measured, name, **wanted))

    return {READINGS[name].text: read(name) for name in names}


def drawn_over(figure: str, parameter: str, by: str, labels: Mapping[Any, str]) -> Callable[[Measured], list[Line]]:
    """Lines of the plain reading at its largest size."""
    return lambda measured: over(figure, parameter, by, labels)(full(measured))
