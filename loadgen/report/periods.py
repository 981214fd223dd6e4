"""A run's time cut up: windows of one width for what changes over time, phases for who was in charge."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from dsms.recording import Recording

WINDOWS = 120  # of the longest of the runs that have the same arrivals


class Phase(NamedTuple):
    """A stretch under one policy."""

    policy: str
    reason: str
    since: float
    until: float


class Cell(NamedTuple):
    """What a window has of a phase: all that is added up over time is added up by cell first."""

    window: int
    phase: int
    since: float
    until: float


@dataclass
class Run:
    """A recorded run with its period."""

    place: int
    label: str
    recording: Recording
    since: float
    until: float
    phases: list[Phase]
    arrivals: str = ""  # alike for runs that had the same
    width: float = 1.0
    cells: list[Cell] = field(default_factory=list)

    @property
    def duration(self) -> float:
        return self.until - self.since

    @property
    def windows(self) -> int:
        return max(math.ceil(self.duration / self.width - 1e-9), 1)

    @property
    def queries(self) -> list[str]:
        return [str(query["name"]) for query in self.recording.about["queries"]]


def phases_of(recording: Recording, until: float) -> list[Phase]:
    """From swap to swap; those that lasted no time are left out, unless there is nothing else."""
    found = [row for row in recording.phases() if row[0] <= until] or [(recording.since, "?", "not recorded")]
    ends = [at for at, *_ in found[1:]] + [until]
    phases = [Phase(policy, reason, at, end) for (at, policy, reason), end in zip(found, ends, strict=True)]
    return [phase for phase in phases if phase.until > phase.since] or phases[-1:]


def cut(runs: Sequence[Run]) -> None:
    """Give every run its windows and cells: runs with the same arrivals have windows of the same width."""
    for run in runs:
        longest = max(other.duration for other in runs if other.arrivals == run.arrivals)
        run.width = longest / WINDOWS if longest > 0 else 1.0
        run.cells = _cells(run)


def _cells(run: Run) -> list[Cell]:
    starts = [phase.since for phase in run.phases]
    cells = []
    for window in range(run.windows):
        since = run.since + window * run.width
        until = run.until if window == run.windows - 1 else run.since + (window + 1) * run.width
        edges = [since, *(start for start in starts if since < start < until), until]
        for low, high in pairwise(edges):
            cells.append(Cell(window, max(bisect_right(starts, low) - 1, 0), low, high))
    return cells
