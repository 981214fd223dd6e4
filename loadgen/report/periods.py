"""Divides a run's time into windows of equal width, phases of one policy each, and cells, their intersections."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from dsms.recording import Recording

WINDOW_COUNT = 120  # of the longest of the runs that have the same arrivals


class RunPhase(NamedTuple):
    """A period of a run under one policy."""

    policy: str
    reason: str
    since: float
    until: float


class Cell(NamedTuple):
    """The intersection of a window and a phase: sums over time are computed by cell first."""

    window: int
    phase: int
    since: float
    until: float


@dataclass
class RecordedRun:
    """A recorded run, its period, and how its time is divided."""

    place: int  # among the runs of the report
    label: str
    recording: Recording
    since: float
    until: float
    phases: list[RunPhase]
    arrivals: str = ""  # fingerprint, equal for runs with the same arrivals
    width: float = 1.0  # of a window
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


def read_phases(recording: Recording, until: float) -> list[RunPhase]:
    """The phases from one policy swap to the next, without those of length 0 unless there is no other."""
    rows = [row for row in recording.phases() if row[0] <= until] or [(recording.since, "?", "not recorded")]
    ends = [at for at, *_ in rows[1:]] + [until]
    phases = [RunPhase(policy, reason, at, end) for (at, policy, reason), end in zip(rows, ends, strict=True)]
    return [phase for phase in phases if phase.until > phase.since] or phases[-1:]


def assign_cells(runs: Sequence[RecordedRun]) -> None:
    """Set the windows and cells of every run; runs with the same arrivals get windows of the same width."""
    for run in runs:
        longest = max(other.duration for other in runs if other.arrivals == run.arrivals)
        run.width = longest / WINDOW_COUNT if longest > 0 else 1.0
        run.cells = _make_cells(run)


def _make_cells(run: RecordedRun) -> list[Cell]:
    starts = [phase.since for phase in run.phases]
    cells = []
    for window in range(run.windows):
        since = run.since + window * run.width
        until = run.until if window == run.windows - 1 else run.since + (window + 1) * run.width
        edges = [since, *(start for start in starts if since < start < until), until]
        for low, high in pairwise(edges):
            cells.append(Cell(window, max(bisect_right(starts, low) - 1, 0), low, high))
    return cells
