"""One run of an experiment: how much memory a policy needs over time, and how often it turns from one to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dsms
from dsms.departures import Departures
from dsms.journal import Journal
from dsms.observers import Observer
from dsms.papers.chain.queries import SOURCES, horizon, table
from dsms.papers.experiment import Point
from dsms.runners.base import Step
from dsms.segment import Segment

VISIT = 20  # tuples of the first stream, through all of their path: what a visit of round robin takes in time
SAMPLES = 280  # up to the last arrival
LONGEST = 300  # of a series
LABELS = {"fifo": "FIFO", "greedy": "Greedy", "rr": "Round-robin", "chain": "Chain"}  # as in the paper's legends
POLICIES = tuple(LABELS)
BY_TUPLE = "rr-by-tuple"  # round robin with visits of one tuple

VISITS = (
    f"A visit of Round-robin lasts as long as {VISIT} tuples take through the whole path, since the paper's quantum "
    "is lost."
)


def policy_text(point: Point) -> str:
    """The policy that a point names; round robin with its quantum, unless a visit is to be one tuple."""
    if point["policy"] == "rr":
        return f"rr:time={VISIT * SOURCES[point['query']][0].work}"
    return "rr" if point["policy"] == BY_TUPLE else str(point["policy"])


def memory(point: Point) -> dict[str, Any]:
    """What the queues held: mean, maximum, and over time."""
    run = dsms.simulate(table(point), policy_text(point), sample=horizon(point) / SAMPLES)
    at, held = series(run.memory.samples)
    level = run.memory.tuples
    return {"mean": level.mean, "max": level.max, "tuples": run.admitted, "elapsed": run.elapsed, "at": at,
            "held": held}  # fmt: skip


def series(samples: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Instants and values, at most `LONGEST` of them, evenly chosen."""
    every = -(-len(samples) // LONGEST) or 1
    return [at for at, _ in samples[::every]], [value for _, value in samples[::every]]


class Operators(Observer):
    """How often another operator runs than the one before, whatever policies cut a plan into."""

    trusted = True

    def __init__(self) -> None:
        self.switches = 0
        self._last = -1

    def turn(self, start: float, segment: Segment, steps: Sequence[Step]) -> None:
        for step in steps:
            station = step[0].station.index
            if station != self._last:
                self.switches += self._last >= 0
                self._last = station


class Leaving(Observer):
    """The results that have left by certain instants."""

    trusted = True

    def __init__(self, at: Sequence[float]) -> None:
        self.at = at
        self.left = [0] * len(at)

    def read(self, journal: Journal) -> None:
        gone = Departures.of(journal)
        for place, instant in enumerate(self.at):
            self.left[place] += int(gone.alike[gone.left <= instant].sum())


def sweep(point: Mapping[str, Any], policies: Sequence[str] = POLICIES) -> list[Point]:
    """The same point under each policy."""
    return [{**point, "policy": policy} for policy in policies]
