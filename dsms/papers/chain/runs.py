"""Simulates one point of a Chain experiment and measures its memory, its operator switches and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dsms
from dsms.data.journal import Journal
from dsms.engine.observers import Observer
from dsms.engine.runners.runner import Step
from dsms.measure.completions import Completions
from dsms.papers.chain.queries import SOURCES, horizon, table
from dsms.papers.experiment import Point
from dsms.plan.segment import Segment

VISIT_TUPLES = 20  # a visit of round robin lasts as long as this many tuples of the first stream take to a sink
SAMPLES = 280  # of the queue size, up to the last arrival
MAX_SERIES_POINTS = 300
LABELS = {"fifo": "FIFO", "greedy": "Greedy", "rr": "Round-robin", "chain": "Chain"}  # as in the paper's legends
POLICIES = tuple(LABELS)
BY_TUPLE = "rr-by-tuple"  # round robin with visits of one tuple

VISITS = (
    f"A visit of Round-robin lasts as long as {VISIT_TUPLES} tuples take through the whole path, since the paper's "
    "quantum is lost."
)


def policy_text(point: Point) -> str:
    """The policy text of a point; round robin gets its quantum, except where a visit is one tuple."""
    if point["policy"] == "rr":
        return f"rr:time={VISIT_TUPLES * SOURCES[point['query']][0].work}"
    return "rr" if point["policy"] == BY_TUPLE else str(point["policy"])


def memory(point: Point) -> dict[str, Any]:
    """The queue size: its mean, its maximum, and its samples over time."""
    run = dsms.simulate(table(point), policy_text(point), sample=horizon(point) / SAMPLES)
    at, held = series(run.memory.samples)
    level = run.memory.tuples
    return {"mean": level.mean, "max": level.max, "tuples": run.admitted, "elapsed": run.elapsed, "at": at,
            "held": held}  # fmt: skip


def series(samples: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Instants and values, evenly thinned out to at most MAX_SERIES_POINTS."""
    every = -(-len(samples) // MAX_SERIES_POINTS) or 1
    return [at for at, _ in samples[::every]], [value for _, value in samples[::every]]


class OperatorObserver(Observer):
    """Counts how often an operator runs after a different one, whatever segments the policy has."""

    trusted = True

    def __init__(self) -> None:
        self.switches = 0
        self._last = -1

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for step in steps:
            station = step.queue.station.index
            if station != self._last:
                self.switches += self._last >= 0
                self._last = station


class OutputObserver(Observer):
    """Counts the results that have left by each of the given instants."""

    trusted = True

    def __init__(self, at: Sequence[float]) -> None:
        self.at = at
        self.left = [0] * len(at)

    def read(self, journal: Journal) -> None:
        completions = Completions.of(journal)
        for place, instant in enumerate(self.at):
            self.left[place] += int(completions.alike[completions.left <= instant].sum())


def sweep(point: Mapping[str, Any], policies: Sequence[str] = POLICIES) -> list[Point]:
    """The same point under each policy."""
    return [{**point, "policy": policy} for policy in policies]
