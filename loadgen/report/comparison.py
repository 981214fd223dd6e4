"""Compares policies: means with confidence intervals, and paired differences between runs with the same arrivals.

Runs and phases under the same policy are its samples. For a policy that ran once the interval is by batch means: its
time is cut into equal stretches, whose means count as samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loadgen.report.analysis import Analysis
from loadgen.report.intervals import MeanInterval, estimate_mean
from loadgen.report.tally import Figures, RunCells

MEASURES = ("memory_mean", "latency_mean", "staleness", "output_rate")  # they have means over stretches of time
GAP_MEASURE = "gap_mean"  # as well, where the lower bound of memory is recorded
OTHER_MEASURES = ("memory_max", "bound_mean", "latency_p50", "latency_p90", "latency_p99", "latency_max")
BATCH_COUNT = 20
BATCH_COUNT_MIN = 5  # below that there is no interval


def compare_policies(analysis: Analysis, reason: str | None = None) -> list[Figures]:
    """One row per policy, in the order in which they first ran; `NAME_half` is half the interval of NAME.

    With a `reason`, only phases that began for it count, if there are any.
    """
    tallies = {tally.run.label: tally for tally in analysis.tallies}
    samples: dict[str, list[Figures]] = {}
    for phase in [phase for phase in analysis.phases if phase["reason"] == reason] or analysis.phases:
        samples.setdefault(phase["policy"], []).append(phase)
    return [_row(policy, rows, tallies) for policy, rows in samples.items()]


def _row(policy: str, rows: list[Figures], tallies: dict[str, RunCells]) -> Figures:
    row: Figures = {"policy": policy, "samples": len(rows), "by": "samples", "batches": None}
    if len(rows) > 1:
        for name in (*MEASURES, GAP_MEASURE, *OTHER_MEASURES):
            _set(row, name, estimate_mean([each[name] for each in rows]))
        return row
    tally = tallies[rows[0]["run"]]
    stretches = make_batches(tally, np.flatnonzero(tally.phase == rows[0]["phase"]))
    row |= {"by": "batch means", "batches": len(stretches)}
    for name in (*MEASURES, GAP_MEASURE):
        _set(row, name, estimate_mean([each[name] for each in stretches], rows[0][name]))
    for name in OTHER_MEASURES:
        _set(row, name, MeanInterval(rows[0][name]))
    return row


def make_batches(tally: RunCells, places: np.ndarray[Any, np.dtype[np.int64]]) -> list[Figures]:
    """The figures of equal stretches of these cells; none if there are too few windows."""
    windows = np.unique(tally.window[places])
    count = min(BATCH_COUNT, len(windows) // 2)
    if count < BATCH_COUNT_MIN:
        return []
    parts = np.array_split(windows, count)
    return [tally.over(places[np.isin(tally.window[places], part)]) for part in parts]


def compare_differences(analysis: Analysis) -> list[Figures]:
    """The differences of policies from the first one, on the same arrivals: one row per policy and measure."""
    by_arrivals: dict[str, dict[str, list[RunCells]]] = {}
    for tally in analysis.tallies:
        if len(tally.run.phases) == 1:
            by_arrivals.setdefault(tally.run.arrivals, {}).setdefault(tally.run.phases[0].policy, []).append(tally)
    groups = [group for group in by_arrivals.values() if len(group) > 1]
    if not groups:
        return []
    first = next(iter(groups[0]))
    others = dict.fromkeys(policy for group in groups if first in group for policy in group if policy != first)
    rows = []
    for policy in others:
        pairs = [(group[first], group[policy]) for group in groups if first in group and policy in group]
        rows += [_difference(policy, first, pairs, name) for name in MEASURES]
    return rows


Pair = tuple[list[RunCells], list[RunCells]]


def _difference(policy: str, first: str, pairs: Sequence[Pair], name: str) -> Figures:
    row: Figures = {"policy": policy, "against": first, "measure": name, "pairs": len(pairs)}
    whole = [_subtract(_mean(mine, name), _mean(theirs, name)) for theirs, mine in pairs]
    if len(pairs) > 1:
        interval, row["by"] = estimate_mean(whole), "pairs"
    else:
        (theirs, *_), (mine, *_) = pairs[0]
        interval, row["by"] = estimate_mean(_pair_batches(mine, theirs, name), whole[0]), "batch means"
    certain = None if interval.mean is None or interval.half is None else abs(interval.mean) > interval.half
    return row | {"difference": interval.mean, "half": interval.half, "certain": certain}


def _pair_batches(mine: RunCells, theirs: RunCells, name: str) -> list[float | None]:
    """The differences of two runs over the same stretches of time, while both ran."""
    both = min(mine.run.windows, theirs.run.windows)
    cut = [make_batches(tally, np.flatnonzero(tally.window < both)) for tally in (mine, theirs)]
    return [_subtract(one[name], other[name]) for one, other in zip(*cut, strict=True)]


def _mean(tallies: Sequence[RunCells], name: str) -> float | None:
    return estimate_mean([tally.whole()[name] for tally in tallies]).mean


def _subtract(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _set(row: Figures, name: str, interval: MeanInterval) -> None:
    row[name], row[f"{name}_half"] = interval
