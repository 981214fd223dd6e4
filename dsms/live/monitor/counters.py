"""The counters of a domain since its start, by name, so that a rebuilt domain continues them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsms.live.monitor.query_stats import QueryStats
from dsms.measure.phases import PolicyPhases


@dataclass(frozen=True)
class Counters:
    """A copy of all counters at one instant."""

    rows: Mapping[str, int]  # by stream
    results: Mapping[str, int]  # by query
    query_stats: QueryStats
    turns: int
    phases: PolicyPhases
    rejected_rows: Mapping[tuple[str, str], int]  # rows by station and kind
    reasons: Mapping[tuple[str, str], str]  # of the first rejected row
