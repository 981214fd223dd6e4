"""Recorded arrivals for figure 10: the user's traces, or an ON/OFF process in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dsms.arrivals import arrivals_from
from dsms.papers.fas_mcq.testbed import Floats, Queries
from dsms.papers.trace_file import packets

STAND_IN = {"sources": 10, "alpha": 1.5, "on": 10.0, "off": 30.0}  # times in mean gaps of the whole stream


def from_files(paths: Sequence[str], tuples: int) -> list[Floats]:
    """The instants in a stretch from the beginning of the traces that has so many tuples for each of them."""
    read = [packets(path, len(paths) * tuples) for path in paths]
    since = min(float(at[0]) for at in read)
    together = np.sort(np.concatenate(read))[: len(paths) * tuples]
    return [at[at <= together[-1]] - since for at in read]


def stand_in(streams: int, tuples: int, seed: int) -> list[Floats]:
    """As many tuples of ON/OFF sources, whose times are heavy-tailed."""
    table = {"kind": "onoff", "rate": 1.0, "count": tuples, **STAND_IN}
    processes = [arrivals_from(table, seed=seed * streams + place) for place in range(streams)]
    return [process.between(0.0, process.end) for process in processes]


def arrivals(recorded: Sequence[Floats], queries: Queries, utilisation: float) -> list[dict[str, Any]]:
    """The same, time stretched so that they bring the utilisation; the paper changes the operators' costs instead."""
    span = max(float(at[-1]) for at in recorded if len(at))
    work = sum(len(at) * queries.work(place) for place, at in enumerate(recorded))
    stretch = work / span / utilisation
    return [{"kind": "list", "at": (at * stretch).tolist()} for at in recorded]
