"""How policies compare: means over runs or phases with confidence intervals, and differences where arrivals are shared.

Runs and phases under the same policy are samples of it. Of a policy that ran once, the interval is by batch means: its
time is cut into stretches of equal length, whose means are taken for samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loadgen.report.analysis import Analysis
from loadgen.report.intervals import Estimate, estimate
from loadgen.report.tally import Figures, Tally

MEASURES = ("memory_mean", "latency_mean", "staleness", "output_rate")  # that have means over stretches of time
GAP = "gap_mean"  # as these, where the least that had to be held is recorded
ALSO = ("memory_max", "bound_mean", "latency_p50", "latency_p90", "latency_p99", "latency_max")
BATCHES = 20
FEWEST = 5  # batches that an interval is made of


def compared(found: Analysis, reason: str | None = None) -> list[Figures]:
    """A row for each policy, in the order in which they first ran; `NAME_half` is half the interval of NAME.

    With a reason only phases that began for it count, if there are any.
    """
    places = {tally.run.label: tally for tally in found.tallies}
    samples: dict[str, list[Figures]] = {}
    for phase in [phase for phase in found.phases if phase["reason"] == reason] or found.phases:
        samples.setdefault(phase["policy"], []).append(phase)
    return [_row(policy, rows, places) for policy, rows in samples.items()]


def _row(policy: str, rows: list[Figures], tallies: dict[str, Tally]) -> Figures:
    row: Figures = {"policy": policy, "samples": len(rows), "by": "samples", "batches": None}
    if len(rows) > 1:
        for name in (*MEASURES, GAP, *ALSO):
            _set(row, name, estimate([each[name] for each in rows]))
        return row
    tally = tallies[rows[0]["run"]]
    stretches = batches(tally, np.flatnonzero(tally.phase == rows[0]["phase"]))
    row |= {"by": "batch means", "batches": len(stretches)}
    for name in (*MEASURES, GAP):
        _set(row, name, estimate([each[name] for each in stretches], rows[0][name]))
    for name in ALSO:
        _set(row, name, Estimate(rows[0][name]))
    return row


def batches(tally: Tally, places: np.ndarray[Any, np.dtype[np.int64]]) -> list[Figures]:
    """The figures of stretches of equal length; none where there are too few windows."""
    windows = np.unique(tally.window[places])
    several = min(BATCHES, len(windows) // 2)
    if several < FEWEST:
        return []
    parts = np.array_split(windows, several)
    return [tally.over(places[np.isin(tally.window[places], part)]) for part in parts]


def differences(found: Analysis) -> list[Figures]:
    """Of policies that had the same arrivals: by how much each differs from the first, a row for each measure."""
    alike: dict[str, dict[str, list[Tally]]] = {}
    for tally in found.tallies:
        if len(tally.run.phases) == 1:
            alike.setdefault(tally.run.arrivals, {}).setdefault(tally.run.phases[0].policy, []).append(tally)
    groups = [group for group in alike.values() if len(group) > 1]
    if not groups:
        return []
    first = next(iter(groups[0]))
    others = dict.fromkeys(policy for group in groups if first in group for policy in group if policy != first)
    rows = []
    for policy in others:
        pairs = [(group[first], group[policy]) for group in groups if first in group and policy in group]
        rows += [_difference(policy, first, pairs, name) for name in MEASURES]
    return rows


Pair = tuple[list[Tally], list[Tally]]


def _difference(policy: str, first: str, pairs: Sequence[Pair], name: str) -> Figures:
    row: Figures = {"policy": policy, "against": first, "measure": name, "pairs": len(pairs)}
    whole = [_minus(_mean(mine, name), _mean(theirs, name)) for theirs, mine in pairs]
    if len(pairs) > 1:
        found, row["by"] = estimate(whole), "pairs"
    else:
        (theirs, *_), (mine, *_) = pairs[0]
        found, row["by"] = estimate(_stretches(mine, theirs, name), whole[0]), "batch means"
    certain = None if found.mean is None or found.half is None else abs(found.mean) > found.half
    return row | {"difference": found.mean, "half": found.half, "certain": certain}


def _stretches(mine: Tally, theirs: Tally, name: str) -> list[float | None]:
    """The differences over the same stretches of both, as long as both ran."""
    both = min(mine.run.windows, theirs.run.windows)
    cut = [batches(tally, np.flatnonzero(tally.window < both)) for tally in (mine, theirs)]
    return [_minus(one[name], other[name]) for one, other in zip(*cut, strict=True)]


def _mean(tallies: Sequence[Tally], name: str) -> float | None:
    return estimate([tally.whole()[name] for tally in tallies]).mean


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _set(row: Figures, name: str, found: Estimate) -> None:
    row[name], row[f"{name}_half"] = found
