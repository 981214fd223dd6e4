"""Recorded arrivals for figure 10: packet traces from files, or a synthetic ON/OFF process as their stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dsms.arrivals import arrivals_from
from dsms.papers.fas_mcq.testbed import Floats, TestbedQueries
from dsms.papers.trace_file import read_packets

STAND_IN = {"sources": 10, "alpha": 1.5, "on": 10.0, "off": 30.0}  # times in mean gaps of the whole stream


def from_files(paths: Sequence[str], tuples: int) -> list[Floats]:
    """The instants of each trace in their common first period, which holds `tuples` per trace on average."""
    traces = [read_packets(path, len(paths) * tuples) for path in paths]
    start = min(float(at[0]) for at in traces)
    end = np.sort(np.concatenate(traces))[: len(paths) * tuples][-1]
    return [at[at <= end] - start for at in traces]


def stand_in(streams: int, tuples: int, seed: int) -> list[Floats]:
    """The instants of `tuples` arrivals for each stream, from ON/OFF sources with heavy-tailed times."""
    table = {"kind": "onoff", "rate": 1.0, "count": tuples, **STAND_IN}
    processes = [arrivals_from(table, seed=seed * streams + place) for place in range(streams)]
    return [process.between(0.0, process.end) for process in processes]


def arrivals(recorded: Sequence[Floats], queries: TestbedQueries, utilisation: float) -> list[dict[str, Any]]:
    """Arrival tables, time stretched to reach the utilisation; the paper changes the operators' costs instead."""
    span = max(float(at[-1]) for at in recorded if len(at))
    work = sum(len(at) * queries.work(place) for place, at in enumerate(recorded))
    stretch = work / span / utilisation
    return [{"kind": "list", "at": (at * stretch).tolist()} for at in recorded]
